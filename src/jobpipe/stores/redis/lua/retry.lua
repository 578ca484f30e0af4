-- with durable.lua
-- told: ids; the payload that they have from now on, or false; its key; whether they begin from the start.
-- Answers the status in which each was found; the id and the unique name of the job that is in its way, if one is.
come_due()
local ids, payload, key, from_start = unpack(told)
local found = {}
local stale = {} -- keys of steps

-- Waits are forgotten; from the start, so is all but the signals that nobody has used.
local function begin_anew(seq)
  local key = durable_key(seq)
  for _, name in ipairs(names_of(key, 'wait')) do strike(key, 'wait', name) end
  if from_start then
    stale[#stale + 1] = steps_key(seq)
    for _, name in ipairs(names_of(key, 'sleep')) do strike(key, 'sleep', name) end
    for _, name in ipairs(names_of(key, 'signal')) do
      local signal = entry_of(key, 'signal', name)
      if not signal or signal[6] then strike(key, 'signal', name) end
    end
  end
end

for n, job in ipairs(load_ids(ids)) do
  found[n] = job and job[STATUS] or ''
  local name = job and NEXT[job[STATUS]].revive and name_of(job)
  local waiting = name and holders_of(name).waiting
  if waiting then
    found[n] = { jobs[waiting][ID], name }
  elseif job and NEXT[job[STATUS]].revive then
    -- Why: it had begun, though its runs were given back.
    if job[EXPIRES_AT] and job[STARTED_AT] > 0 and job[RUNS] == 0 then job[EXPIRES_AT] = false end
    job[ATTEMPTS], job[RUN_AT], job[STARTED_AT], job[PROGRESS] = 0, now, 0, ''
    if payload then
      stow(job, PAYLOAD, payload)
      job[KEY] = key
    end
    stow(job, RESULT, '')
    stow(job, ERROR, '')
    shift(job, 'revive')
    job[FINISHED_AT] = 0
    begin_anew(job[SEQ])
  end
end
flush()
write_entries()
for _, key in ipairs(stale) do redis.call('DEL', key) end
return found
