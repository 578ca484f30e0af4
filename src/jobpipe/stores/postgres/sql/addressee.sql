-- The job that is sent a signal. Why locked: it may begin to wait at this moment.
SELECT seq, status FROM jobpipe.jobs WHERE id = %(id)s FOR NO KEY UPDATE
