SELECT queue, type FROM tallies
WHERE status = 'queued' AND count > 0
    AND type IN (SELECT value FROM json_each(?))
    AND queue NOT IN (SELECT queue FROM paused)
