-- told: ids.
come_due()
local found = {}
for n, job in ipairs(load_ids(told)) do
  found[n] = job and job[STATUS] or ''
  if job and NEXT[job[STATUS]].revive then
    job[ATTEMPTS], job[RUN_AT], job[STARTED_AT], job[PROGRESS] = 0, now, 0, ''
    stow(job, RESULT, '')
    stow(job, ERROR, '')
    shift(job, 'revive')
    job[FINISHED_AT] = 0
  end
end
flush()
return found
