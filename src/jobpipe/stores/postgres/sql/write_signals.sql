INSERT INTO jobpipe.signals (job, name, payload, fingerprint, sent_at, is_used)
SELECT seq, signal.name, signal.payload, signal.fingerprint, signal.sent_at, signal.is_used
FROM unnest(
    %(ids)s::text[], %(names)s::text[], %(payloads)s::text[], %(fingerprints)s::text[], %(sent_at)s::float8[],
    %(are_used)s::boolean[]
) AS signal (id, name, payload, fingerprint, sent_at, is_used) JOIN jobpipe.jobs USING (id)
