-- Those that do not begin yet, and pass no gate. Why apart: to write a status, even the same, costs as much as to change it.
UPDATE jobs SET worker = :worker, token = :token, lease_until = :until, is_parked = 2
WHERE seq IN (SELECT value FROM json_each(:seqs))
