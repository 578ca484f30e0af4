SELECT events.number - cardinality(events.jobs) + one.place, jobs.id, jobs.type, jobs.queue, events.status, one.attempts
FROM jobpipe.events
CROSS JOIN LATERAL unnest(events.jobs, events.attempts) WITH ORDINALITY AS one (seq, attempts, place)
JOIN jobpipe.jobs ON jobs.seq = one.seq
WHERE events.number > %(after)s AND events.number - cardinality(events.jobs) + one.place > %(after)s
ORDER BY events.number, one.place LIMIT %(limit)s
