-- with names.lua
-- told: seconds to keep finished jobs, seconds to keep failed ones, how many at the most.
come_due()
local keep, keep_failed, limit = unpack(told)

-- Forget the gates that hold nothing up, and the types that have cooled down.
for _, type in ipairs(redis.call('ZRANGE', P .. 'gated', 0, -1)) do
  for _, key in ipairs(redis.call('ZRANGEBYSCORE', P .. 'pace:' .. type, '-inf', now, 'LIMIT', 0, 1000)) do
    local is_held = redis.call('EXISTS', P .. 'holders:' .. type .. '/' .. key) == 1
    if not is_held and not redis.call('ZSCORE', P .. 'opening:' .. type, key) then
      redis.call('ZREM', P .. 'pace:' .. type, key)
      redis.call('ZREM', P .. 'gates:' .. type, key)
    end
  end
  if redis.call('EXISTS', P .. 'gates:' .. type, P .. 'opening:' .. type) == 0 then
    redis.call('ZREM', P .. 'gated', type)
  end
end
local cooling = redis.call('HGETALL', P .. 'cooling')
for n = 1, #cooling, 2 do
  if tonumber(cooling[n + 1]) <= now then redis.call('HDEL', P .. 'cooling', cooling[n]) end
end

-- Forget the first of them that ended so long ago; how many it were.
local function forget_ended(key, seconds, most)
  local till = string.format('(%.17g', now - seconds)
  local seqs = redis.call('ZRANGEBYSCORE', key, '-inf', till, 'LIMIT', 0, most)
  if #seqs == 0 then return 0 end
  load(seqs)
  local gone = {}
  for _, seq in ipairs(seqs) do
    local job = jobs[seq]
    if key == ENDED and job and job[STATUS] == 'failed' then
      drop(ENDED, seq)
      add(FAILED, job[FINISHED_AT], seq)
    else
      gone[#gone + 1] = seq
    end
  end
  forget_all(gone, key)
  return #gone
end

-- Let those that wait come due again: an older program does not know them, and strikes them off.
local function find_waiting()
  local waiting = OF_STATUS.waiting
  local count = redis.call('ZCARD', waiting)
  if redis.call('ZCARD', DUE) >= redis.call('ZCARD', OF_STATUS.scheduled) + count then return end
  for first = 0, count - 1, AT_ONCE do
    local seqs, lost = redis.call('ZRANGE', waiting, first, first + AT_ONCE - 1), {}
    for n, run_at in ipairs(redis.call('ZMSCORE', DUE, unpack(seqs))) do
      if not run_at then lost[#lost + 1] = seqs[n] end
    end
    load(lost)
    for _, seq in ipairs(lost) do
      if jobs[seq] and jobs[seq][STATUS] == 'waiting' then add(DUE, jobs[seq][RUN_AT], seq) end
    end
  end
  flush()
end

local count = forget_ended(ENDED, keep, limit)
if count < limit then count = count + forget_ended(FAILED, keep_failed, limit - count) end
if count < limit then
  recount()
  find_waiting()
end
return count
