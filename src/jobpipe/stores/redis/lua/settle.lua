-- with runs.lua
-- with logs.lua
-- with durable.lua
-- with suspending.lua
-- told: ids, and for each the token, the move, the result, the error, the delay, the progress,
-- for how long the type is to cool, when the run began, if it is not known yet that it did: 0 for now, what it logged, and
-- the name of the sleep, or of the signal that it is to wait for.
come_due()
local ids, outcomes = unpack(told)
local recorded, cooling, logged = {}, {}, {}
for n, job in ipairs(load_ids(ids)) do
  local token, move, result, error, delay, progress, cools, started_at, chunks, name = unpack(outcomes[n])
  if is_held(job, token) then
    if is_ahead(job) then begin(job, started_at > 0 and started_at or now) end
    if chunks then logged[#logged + 1] = { job[SEQ], job[RUNS], token, chunks } end
    local run_at, is_signalled = now + delay, false
    if name and job[IS_CANCELLING] == 0 then run_at, is_signalled = suspend(job, move, name, delay) end
    end_run(job, move, error, progress, result, run_at)
    if is_signalled then go_on(job) end
    job[IS_SUSPECT] = 0
    if cools > 0 then cooling[job[TYPE]] = math.max(cooling[job[TYPE]] or 0, now + cools) end
    recorded[n] = 1
  else
    -- A settled job keeps its token until the next claim, so that the same can be told twice.
    recorded[n] = job and token ~= '' and job[STATUS] ~= 'running' and job[TOKEN] == token and 1 or 0
  end
end
flush()
write_entries()
for _, log in ipairs(logged) do write_log(unpack(log)) end
for type, until_at in pairs(cooling) do
  if tonumber(redis.call('HGET', P .. 'cooling', type) or 0) < until_at then
    redis.call('HSET', P .. 'cooling', type, until_at)
  end
end
return recorded
