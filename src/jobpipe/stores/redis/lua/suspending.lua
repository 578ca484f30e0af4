-- For the scripts that suspend jobs, or let them go on. They have durable.lua, too.

-- Note the sleep or the wait with which a run ends. When is it over, and is the signal there already?
local function suspend(job, kind, name, delay)
  local key = durable_key(job[SEQ])
  local entry = entry_of(key, kind, name)
  if kind == 'wait' then
    for _, other in ipairs(names_of(key, kind)) do
      local wait = other ~= name and entry_of(key, kind, other)
      if wait and not wait[4] then strike(key, kind, other) end
    end
  end
  if not entry then
    entry = { kind, name, now + delay }
    note(key, entry)
  end
  return entry[3], kind == 'wait' and not entry[4] and entry_of(key, 'signal', name) ~= nil
end

-- Queue a job whose signal has come.
local function go_on(job)
  -- Why taken back: it may have begun to wait in this very script.
  take_back(OF_STATUS.waiting, job[SEQ])
  take_back(DUE, job[SEQ])
  job[RUN_AT] = now
  shift(job, 'signal')
end

local function is_timed_out(wait)
  return wait and (wait[4] or wait[3] <= now)
end
