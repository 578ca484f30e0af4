-- Is there more to fold than a few changes?
SELECT count(*) >= %(most)s FROM (SELECT FROM jobpipe.journal LIMIT %(most)s) AS changes
