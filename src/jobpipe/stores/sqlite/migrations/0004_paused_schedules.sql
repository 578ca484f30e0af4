-- While it is paused no tick fires, and next_at is where it stood.
ALTER TABLE schedules ADD COLUMN is_paused INTEGER NOT NULL DEFAULT 0;
