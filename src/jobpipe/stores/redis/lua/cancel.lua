-- told: ids.
come_due()
local found = {}
for n, job in ipairs(load_ids(told)) do
  found[n] = job and job[STATUS] or ''
  if job and job[STATUS] == 'running' then
    job[IS_CANCELLING] = 1
    touch(job)
    has_changes = true
  elseif job and NEXT[job[STATUS]].cancel then
    shift(job, 'cancel')
  end
end
flush()
return found
