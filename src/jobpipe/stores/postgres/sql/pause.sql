INSERT INTO jobpipe.paused (queue) VALUES (%(queue)s) ON CONFLICT DO NOTHING
