-- Writing: all that has changed, at once.

local function flush_texts()
  local set, del = {}, {}
  for name, value in pairs(texts) do
    if value then
      set[#set + 1] = name
      set[#set + 1] = value
    else
      del[#del + 1] = name
    end
  end
  many('HDEL', P .. 'texts', del)
  many('HSET', P .. 'texts', set)
end

local function increase(key, prefix, changes)
  for name, by in pairs(changes) do
    if by ~= 0 then redis.call('HINCRBY', key, prefix .. name, by) end
  end
end

local function flush_queued()
  for queue, by in pairs(queued) do
    if by ~= 0 and redis.call('HINCRBY', P .. 'queued', queue, by) == 0 then redis.call('HDEL', P .. 'queued', queue) end
  end
end

local function flush_lanes()
  for _, lane in ipairs(lanes) do
    local prefix = lane.queue .. '/' .. lane.type .. '/'
    increase(P .. 'counts', prefix, lane.counts)
    increase(P .. 'totals', prefix, lane.totals)
    for kind in pairs(lane.changed) do
      local command = redis.call('EXISTS', lane[kind]) == 1 and 'SADD' or 'SREM'
      redis.call(command, P .. kind .. '-lanes:' .. lane.type, lane.name)
    end
  end
  flush_queued()
  for lane in pairs(named) do redis.call('SADD', P .. 'names', lane) end
end

local function flush_names()
  for name, found in pairs(holders) do
    for _, kind in ipairs(found.is_changed and { 'waiting', 'running' } or {}) do
      if found[kind] then
        redis.call('HSET', P .. 'unique', kind .. '/' .. name, found[kind])
      else
        redis.call('HDEL', P .. 'unique', kind .. '/' .. name)
      end
    end
    found.is_changed = false
  end
end

local function flush_gates()
  for parked, place in pairs(parkings) do
    local type, gate, queue = unpack(place)
    local queues = P .. 'parking:' .. type .. '/' .. gate
    redis.call(redis.call('EXISTS', parked) == 1 and 'SADD' or 'SREM', queues, queue)
    if redis.call('EXISTS', queues) == 0 then redis.call('ZREM', P .. 'opening:' .. type, gate) end
  end
  for name, place in pairs(left) do
    local type, gate = unpack(place)
    if redis.call('EXISTS', P .. 'holders:' .. name) == 0 and not redis.call('ZSCORE', P .. 'pace:' .. type, gate) then
      redis.call('ZREM', P .. 'gates:' .. type, gate)
    end
    redis.call('ZADD', P .. 'opening:' .. type, 'XX', now, gate)
    has_work = true
  end
end

local function flush_events()
  if event_count > 0 then
    local last = redis.call('INCRBY', P .. 'event', event_count)
    redis.call(
      'XADD', P .. 'events', 'MINID', '~', string.format('%.0f', math.max(last - KEPT_EVENTS, 0)),
      string.format('%.0f-0', last), 'count', event_count, 'events', cmsgpack.pack(events)
    )
    has_changes = true
  end
end

-- Tell who watches.
local function tell()
  if has_changes then redis.call('PUBLISH', P .. 'changes', '') end
  if has_work then redis.call('PUBLISH', P .. 'work', '') end
  has_changes, has_work = false, false
end

-- Write all that has changed, and tell who watches.
local function flush()
  -- Why: a server without memory to spare lets a script go on that has begun to write. Jobs that it has must be
  -- able to run and to end; those that ask for more (insert, adopt) have been refused before.
  redis.call('DEL', P .. 'nothing')
  for key, args in pairs(drops) do many('ZREM', key, args) end
  for key, args in pairs(adds) do many('ZADD', key, args) end
  local written = {}
  for _, seq in ipairs(changed) do
    stored[seq] = cmsgpack.pack(jobs[seq])
    written[#written + 1] = seq
    written[#written + 1] = stored[seq]
  end
  many('HSET', P .. 'jobs', written)
  if #fresh > 0 then
    redis.call('INCRBY', P .. 'seq', #fresh / 2)
    many('HSET', P .. 'ids', fresh)
  end
  flush_texts()
  flush_lanes()
  flush_names()
  flush_gates()
  flush_events()
  tell()
  changed, is_changed, fresh, adds, drops, texts = {}, {}, {}, {}, {}, {}
  queued, events, event_count = {}, {}, 0
  lanes, lane_index, named, parkings, left = {}, {}, {}, {}, {}
end

-- Delete jobs for good; what is named there but does not exist is only struck off.
local function forget_all(seqs, named_in)
  local ids = {}
  for _, seq in ipairs(seqs) do
    local job = jobs[seq]
    if job then
      leave(job, lane_of(job))
      ids[#ids + 1] = job[ID]
      for field = PAYLOAD, HISTORY do
        if job[field] == true then texts[seq .. ':' .. field] = false end
      end
      for _, tag in ipairs(job[TAGS] or {}) do drop(P .. 'tag:' .. tag, seq) end
    else
      drop(named_in, seq)
    end
  end
  for _, seq in ipairs(seqs) do
    if jobs[seq] and name_of(jobs[seq]) then let_in(jobs[seq][UNIQUE]) end
  end
  flush()
  many('HDEL', P .. 'jobs', seqs)
  many('HDEL', P .. 'ids', ids)
  local own = {}
  for _, seq in ipairs(seqs) do
    for _, kind in ipairs({ 'log:', 'steps:', 'durable:' }) do own[#own + 1] = P .. kind .. seq end
  end
  for first = 1, #own, AT_ONCE do redis.call('DEL', unpack(own, first, math.min(first + AT_ONCE - 1, #own))) end
end

-- End what has expired by now: the first of it, if it is very much.
local function expire()
  local seqs = redis.call('ZRANGEBYSCORE', EXPIRING, '-inf', now, 'LIMIT', 0, MOST_DUE)
  if #seqs > 0 then
    load(seqs)
    for _, seq in ipairs(seqs) do
      local job = jobs[seq]
      if job and NEXT[job[STATUS]].expire and not is_ahead(job) and may_expire(job) then
        shift(job, 'expire')
      else
        drop(EXPIRING, seq)
      end
    end
    flush()
  end
end

-- Queue what is due by now, in the same way.
local function come_due()
  expire()
  local seqs = redis.call('ZRANGEBYSCORE', DUE, '-inf', now, 'LIMIT', 0, MOST_DUE)
  if #seqs > 0 then
    load(seqs)
    for _, seq in ipairs(seqs) do
      local job = jobs[seq]
      if job and NEXT[job[STATUS]]['come due'] then shift(job, 'come due') else drop(DUE, seq) end
    end
    flush()
  end
end
