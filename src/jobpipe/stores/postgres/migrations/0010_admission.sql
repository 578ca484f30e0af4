-- How many jobs are scheduled in all is asked with every delayed one that is put in: so few rows are added up.
CREATE INDEX tallies_scheduled ON jobpipe.tallies (queue, type) WHERE status = 'scheduled';
-- Which types are in no queue any more is asked once a minute.
CREATE INDEX tallies_by_type ON jobpipe.tallies (type, queue);
