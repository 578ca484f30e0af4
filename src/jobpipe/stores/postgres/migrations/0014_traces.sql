-- The W3C context of the span that enqueued the job: NULL where there is none, as in most.
ALTER TABLE jobpipe.jobs ADD COLUMN trace text;
