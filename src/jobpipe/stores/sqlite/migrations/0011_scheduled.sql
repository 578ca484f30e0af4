-- The same without the count, which every change of a job writes: an index on it had to be maintained each time.
DROP INDEX tallies_scheduled;
CREATE INDEX tallies_scheduled ON tallies (queue, type) WHERE status = 'scheduled';
