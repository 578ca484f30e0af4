-- For the claim: the gates of limits, and the jobs that are parked before one that is closed.
-- A limit is {interval, burst, concurrency, is it keyed?}. The arithmetic is that of model/gate.py, to the letter.

local function new_gate(type, key, limit)
  local next_at = tonumber(redis.call('ZSCORE', P .. 'pace:' .. type, key) or 0)
  local interval, burst, concurrency = unpack(limit)
  -- Why bounded: what is further ahead is from a time when the rate was lower.
  if next_at > now + LEAD + burst * interval then next_at = now end
  return {
    type = type, key = key, interval = interval, burst = burst, concurrency = concurrency,
    next_at = next_at, running = redis.call('ZCARD', P .. 'holders:' .. type .. '/' .. key),
  }
end

-- When one more may start; nothing while as many run as may.
local function starts_at(gate)
  if gate.concurrency > 0 and gate.running >= gate.concurrency then return nil end
  return gate.interval > 0 and math.max(now, gate.next_at - (gate.burst - 1) * gate.interval) or now
end

local function is_open(gate)
  local at = starts_at(gate)
  return at and at <= now + LEAD
end

local function start(gate, at)
  if gate.interval > 0 then gate.next_at = math.max(gate.next_at, at) + gate.interval end
  gate.running = gate.running + 1
end

-- Let one more in, if it may start soon: in how many seconds. With another gate, through both or none.
local function pass(gate, other)
  local at = starts_at(gate)
  if not at or at > now + LEAD then return nil end
  if other then
    local others = starts_at(other)
    if not others or others > now + LEAD then return nil end
    at = math.max(at, others)
    start(other, at)
  end
  start(gate, at)
  return at - now
end

-- When to try again. Why half the lead: then the one after is claimed along.
local function opens_at(gate)
  local at = starts_at(gate)
  return at and math.min(at - LEAD / 2, now + INSURANCE) or now + INSURANCE
end

-- Move a queued job from its lane to before its gate.
local function park(job, gate)
  drop(change(lane_of(job), 'ready'), job[SEQ])
  job[GATE] = '=' .. gate.key
  add(change(lane_of(job), 'held'), job[RUN_AT], job[SEQ])
  local key, name = parking_of(job)
  add(key, 0, name)
  touch(job)
end

-- Put the first jobs that are parked there back into their lanes; how many it were.
local function let_out(type, queue, key, most)
  local names = redis.call('ZRANGE', P .. 'parked:' .. type .. '/' .. queue .. '/' .. key, 0, most - 1)
  local seqs = {}
  for n, name in ipairs(names) do seqs[n] = string.sub(name, -14) end
  load(seqs)
  for _, seq in ipairs(seqs) do
    local job = jobs[seq]
    if job and job[STATUS] == 'queued' and not is_ahead(job) and job[GATE] ~= '' then
      leave_queue(job, lane_of(job))
      add(change(lane_of(job), 'ready'), job[RUN_AT], seq)
      touch(job)
    end
  end
  return #seqs
end

-- Let out what may be claimed now of a type: from each queue as many as might enter, since the best of all may be in
-- any. The keys of the gates that have room.
local function open_gates(type, limit, paused, most)
  local keys = redis.call('ZRANGEBYSCORE', P .. 'opening:' .. type, '-inf', now, 'LIMIT', 0, 100)
  local with_room, count = {}, 0
  for _, key in ipairs(keys) do
    local again_at, room = now + LEAD / 2, most
    if limit and limit[4] then
      local trial = new_gate(type, key, limit)
      room = 0
      while room < most and pass(trial) do room = room + 1 end
      again_at = math.max(opens_at(trial), again_at)
    end
    local queues = redis.call('SMEMBERS', P .. 'parking:' .. type .. '/' .. key)
    if #queues == 0 then
      drop(P .. 'opening:' .. type, key)
    else
      add(P .. 'opening:' .. type, again_at, key)
    end
    if room > 0 then
      with_room[#with_room + 1] = key
      for _, queue in ipairs(queues) do
        if not paused[queue] then count = count + let_out(type, queue, key, room) end
      end
    end
    if count >= MOST_PASSED_OVER then break end
  end
  if #keys > 0 then flush() end
  return with_room
end
