INSERT INTO logs (job, token, start, attempt, cut, count, size, lines)
SELECT seq, '', :start, :attempt, :cut, :count, :size, :lines FROM jobs WHERE id = :id
