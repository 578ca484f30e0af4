SELECT job, name, payload, fingerprint, sent_at, is_used FROM signals
WHERE job IN (SELECT value FROM json_each(?)) ORDER BY name
