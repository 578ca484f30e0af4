DELETE FROM jobpipe.tallies WHERE queue = '' AND NOT EXISTS (
    SELECT 1 FROM jobpipe.tallies AS other WHERE other.queue <> '' AND other.type = tallies.type
)
