SELECT events.number, jobs.id, jobs.type, jobs.queue, events.status, events.attempts
FROM events JOIN jobs ON jobs.seq = events.job
WHERE events.number > ? ORDER BY events.number LIMIT ?
