-- How many jobs are scheduled in all is asked with every delayed one that is put in: so few rows are added up.
CREATE INDEX tallies_scheduled ON tallies (count) WHERE status = 'scheduled' AND count > 0;
