-- told: ids; the payload that they have from now on, or false; its key.
-- Answers the status in which each was found; the id and the unique name of the job that is in its way, if one is.
come_due()
local ids, payload, key = unpack(told)
local found = {}
for n, job in ipairs(load_ids(ids)) do
  found[n] = job and job[STATUS] or ''
  local name = job and NEXT[job[STATUS]].revive and name_of(job)
  local waiting = name and holders_of(name).waiting
  if waiting then
    found[n] = { jobs[waiting][ID], name }
  elseif job and NEXT[job[STATUS]].revive then
    job[ATTEMPTS], job[RUN_AT], job[STARTED_AT], job[PROGRESS] = 0, now, 0, ''
    if payload then
      stow(job, PAYLOAD, payload)
      job[KEY] = key
    end
    stow(job, RESULT, '')
    stow(job, ERROR, '')
    shift(job, 'revive')
    job[FINISHED_AT] = 0
  end
end
flush()
return found
