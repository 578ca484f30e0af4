DELETE FROM tallies AS gone WHERE queue <> '' AND NOT EXISTS (
    SELECT 1 FROM tallies WHERE queue = gone.queue AND type = gone.type AND count > 0
)
