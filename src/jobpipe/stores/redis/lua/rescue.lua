-- with runs.lua
-- told: how many at the most, the error as JSON.
come_due()
local limit, error = unpack(told)
local seqs = redis.call('ZRANGEBYSCORE', LEASES, '-inf', now, 'LIMIT', 0, limit)
if #seqs == 0 then return {} end
load(seqs)
local rescued = {}
for _, seq in ipairs(seqs) do
  local job = jobs[seq]
  if job and job[STATUS] == 'running' then
    end_run(job, job[ATTEMPTS] > job[MAX_RETRIES] and 'fail' or 'rescue', error, '', '', 0)
    job[TOKEN] = ''
    for _, value in ipairs({ job[ID], job[WORKER], job[STATUS] }) do rescued[#rescued + 1] = value end
  else
    drop(LEASES, seq)
  end
end
flush()
return rescued
