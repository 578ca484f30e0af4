-- While it is paused no tick fires, and next_at is where it stood.
ALTER TABLE jobpipe.schedules ADD COLUMN is_paused boolean NOT NULL DEFAULT false;
