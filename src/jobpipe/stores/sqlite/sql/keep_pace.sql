-- :gates is a JSON array of type, key and next_at.
INSERT INTO gates (type, key, next_at)
SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(:gates) WHERE true
ON CONFLICT DO UPDATE SET next_at = excluded.next_at
