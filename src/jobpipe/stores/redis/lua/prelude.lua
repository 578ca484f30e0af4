-- What every script begins with: the keys, the time, and the one way in which a job changes.
-- Nothing is written before flush(), so that a script which fails on its way leaves no trace.
-- Above this stand, made by scripts.py: the places of a record's fields (SEQ, ID, ...), the table NEXT of
-- legal moves, FINISHED, and the constants in capitals.

local P = KEYS[1] .. ':'
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = (time[1] * 1e6 + time[2]) / 1e6
end
local told = ARGV[2] and cmsgpack.unpack(ARGV[2])

local OF_STATUS = {} -- status -> key of the jobs that have it, in the order of insertion; not of those that run
for status in pairs(NEXT) do OF_STATUS[status] = P .. 'status:' .. status end

local AT_ONCE = 1000 -- arguments of one command: Lua's stack has an end
local LONG = 512 -- bytes: a longer text does not stand in the record, but by itself

local jobs = {} -- seq -> record: all that were read or made
local changed, is_changed = {}, {} -- seqs of the records to be written
local fresh = {} -- id, seq, id, seq, ...: of new jobs
local adds, drops = {}, {} -- key of a sorted set -> arguments of ZADD, of ZREM
local stored = {} -- seq -> the record as flush() has written it
local lanes = {} -- name -> lane: all that a job was in
local waiting = {} -- queue -> by how much the jobs that wait there change
local parkings = {} -- key of a sorted set of parked jobs that changed -> {type, key of the gate, queue}
local left = {} -- name of a gate that a job has left -> {type, key}
local texts = {} -- name -> long text to be written, or false to be deleted
local events, event_count = {}, 0 -- id, type, queue, status, attempts, id, ...
local numbers = {} -- number -> as text, since the same come again and again
local has_news = false

local function many(command, key, args)
  for first = 1, #args, AT_ONCE do
    redis.call(command, key, unpack(args, first, math.min(first + AT_ONCE - 1, #args)))
  end
end

local function fetch(key, fields)
  local found = {}
  for first = 1, #fields, AT_ONCE do
    local some = redis.call('HMGET', key, unpack(fields, first, math.min(first + AT_ONCE - 1, #fields)))
    for n = 1, #some do found[first + n - 1] = some[n] end
  end
  return found
end

-- Read the records that are not there yet. One that cannot be read, which only somebody else can have put
-- there, counts as none.
local function load(seqs)
  local missing = {}
  for _, seq in ipairs(seqs) do
    if seq and not jobs[seq] then missing[#missing + 1] = seq end
  end
  for n, packed in ipairs(fetch(P .. 'jobs', missing)) do
    if packed then
      local is_read, job = pcall(cmsgpack.unpack, packed)
      if is_read and type(job) == 'table' and job[SEQ] == missing[n] then jobs[missing[n]] = job end
    end
  end
end

-- The records of ids, in their order; false for an unknown one.
local function load_ids(ids)
  local seqs = fetch(P .. 'ids', ids)
  load(seqs)
  local found = {}
  for n = 1, #ids do found[n] = seqs[n] and jobs[seqs[n]] or false end
  return found
end

local function touch(job)
  if not is_changed[job[SEQ]] then
    is_changed[job[SEQ]] = true
    changed[#changed + 1] = job[SEQ]
  end
end

-- A number in all its digits.
local function as_text(number)
  local text = numbers[number]
  if not text then
    text = string.format('%.17g', number)
    numbers[number] = text
  end
  return text
end

local function add(key, score, member)
  local args = adds[key]
  if not args then
    args = {}
    adds[key] = args
  end
  local size = #args
  args[size + 1] = type(score) == 'number' and as_text(score) or score
  args[size + 2] = member
end

local function drop(key, member)
  local args = drops[key]
  if not args then
    args = {}
    drops[key] = args
  end
  args[#args + 1] = member
end

local function text(job, field)
  local value = job[field]
  if value ~= true then return value end
  local name = job[SEQ] .. ':' .. field
  return texts[name] or redis.call('HGET', P .. 'texts', name) or ''
end

local function stow(job, field, value)
  if #value > LONG then
    texts[job[SEQ] .. ':' .. field] = value
    job[field] = true
  else
    if job[field] == true then texts[job[SEQ] .. ':' .. field] = false end
    job[field] = value
  end
end

-- The jobs of a type, queue and priority. `ready` and `held` are the keys of those that may be claimed and those that are
-- parked, sorted by run_at; counts and totals are what changes of how many have, and ever had, each status.
local function lane_of(job)
  local name = job[PRIORITY] .. '/' .. job[QUEUE]
  local whole = job[TYPE] .. '/' .. name
  local lane = lanes[whole]
  if not lane then
    lane = {
      type = job[TYPE], queue = job[QUEUE], name = name, counts = {}, totals = {}, changed = {},
      ready = P .. 'ready:' .. whole, held = P .. 'held:' .. whole,
    }
    lanes[whole] = lane
  end
  return lane
end

local function tally(lane, status, change)
  lane.counts[status] = (lane.counts[status] or 0) + change
  if change > 0 then lane.totals[status] = (lane.totals[status] or 0) + change end
  if WAITING[status] then waiting[lane.queue] = (waiting[lane.queue] or 0) + change end
end

-- The key of the jobs of the lane that are ready, or held; it is about to change.
local function change(lane, kind)
  lane.changed[kind] = true
  return lane[kind]
end

-- Where a job is parked before its gate, and its name there, which sorts as claims do.
local function parking_of(job)
  local gate = string.sub(job[GATE], 2)
  local key = P .. 'parked:' .. job[TYPE] .. '/' .. job[QUEUE] .. '/' .. gate
  parkings[key] = { job[TYPE], gate, job[QUEUE] }
  return key, struct.pack('>I2d', 1000 - job[PRIORITY], math.max(job[RUN_AT], 0)) .. job[SEQ]
end

local function leave_queue(job)
  if job[GATE] == '' then
    drop(change(lane_of(job), 'ready'), job[SEQ])
  else
    drop(change(lane_of(job), 'held'), job[SEQ])
    drop(parking_of(job))
    job[GATE] = ''
  end
end

local function leave_gate(job)
  if job[GATE] ~= '' then
    local name = job[TYPE] .. '/' .. string.sub(job[GATE], 2)
    drop(P .. 'holders:' .. name, job[ID])
    left[name] = { job[TYPE], string.sub(job[GATE], 2) }
    job[GATE] = ''
  end
end

local function leave(job)
  local status, seq = job[STATUS], job[SEQ]
  tally(lane_of(job), status, -1)
  if status == 'running' then -- the leases name them all
    drop(P .. 'leases', seq)
    leave_gate(job)
    job[IS_CANCELLING] = 0
    return
  end
  drop(OF_STATUS[status], seq)
  if status == 'queued' then
    leave_queue(job)
  elseif status == 'scheduled' then
    drop(P .. 'due', seq)
  else
    drop(P .. 'finished', seq)
  end
end

-- Who enters a job as `running` adds its lease.
local function enter(job)
  local status, seq, lane = job[STATUS], job[SEQ], lane_of(job)
  tally(lane, status, 1)
  if status ~= 'running' then add(OF_STATUS[status], seq, seq) end
  if status == 'queued' then
    add(change(lane, 'ready'), job[RUN_AT], seq)
  elseif status == 'scheduled' then
    add(P .. 'due', job[RUN_AT], seq)
  elseif FINISHED[status] then
    add(P .. 'finished', job[FINISHED_AT], seq)
  end
  local n = event_count * 5
  events[n + 1], events[n + 2], events[n + 3], events[n + 4], events[n + 5] =
    job[ID], job[TYPE], job[QUEUE], status, job[ATTEMPTS]
  event_count = event_count + 1
  touch(job)
end

-- The only way in which a status changes.
local function shift(job, move)
  local status = NEXT[job[STATUS]][move]
  if not status then error('the transition table knows no ' .. move .. ' of a job that is ' .. job[STATUS]) end
  leave(job)
  job[STATUS] = status
  if FINISHED[status] then job[FINISHED_AT] = now end
  enter(job)
end

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

local function flush_lanes()
  for _, lane in pairs(lanes) do
    local prefix = lane.queue .. '/' .. lane.type .. '/'
    increase(P .. 'counts', prefix, lane.counts)
    increase(P .. 'totals', prefix, lane.totals)
    for kind in pairs(lane.changed) do
      local command = redis.call('EXISTS', lane[kind]) == 1 and 'SADD' or 'SREM'
      redis.call(command, P .. kind .. '-lanes:' .. lane.type, lane.name)
    end
  end
  increase(P .. 'waiting', '', waiting)
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
  end
end

local function flush_events()
  if event_count > 0 then
    local last = redis.call('INCRBY', P .. 'event', event_count)
    redis.call(
      'XADD', P .. 'events', 'MINID', '~', string.format('%.0f', math.max(last - KEPT_EVENTS, 0)),
      string.format('%.0f-0', last), 'count', event_count, 'events', cmsgpack.pack(events)
    )
    has_news = true
  end
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
  flush_gates()
  flush_events()
  if has_news then redis.call('PUBLISH', P .. 'news', '') end
  changed, is_changed, fresh, adds, drops, texts = {}, {}, {}, {}, {}, {}
  waiting, events, event_count, has_news = {}, {}, 0, false
  lanes, parkings, left = {}, {}, {}
end

-- Delete jobs for good; what is named there but does not exist is only struck off.
local function forget_all(seqs, named_in)
  local ids = {}
  for _, seq in ipairs(seqs) do
    local job = jobs[seq]
    if job then
      leave(job)
      ids[#ids + 1] = job[ID]
      for field = PAYLOAD, HISTORY do
        if job[field] == true then texts[seq .. ':' .. field] = false end
      end
    else
      drop(named_in, seq)
    end
  end
  flush()
  many('HDEL', P .. 'jobs', seqs)
  many('HDEL', P .. 'ids', ids)
end

-- Queue what is due by now: the first of it, if it is very much.
local function come_due()
  local seqs = redis.call('ZRANGEBYSCORE', P .. 'due', '-inf', now, 'LIMIT', 0, MOST_DUE)
  if #seqs > 0 then
    load(seqs)
    for _, seq in ipairs(seqs) do
      if jobs[seq] then shift(jobs[seq], 'come due') else drop(P .. 'due', seq) end
    end
    flush()
  end
end

-- A list of packed values as one packed list.
local function packed_list(values)
  local size = #values
  local head = string.char(
    0xdd, math.floor(size / 2 ^ 24), math.floor(size / 2 ^ 16) % 256, math.floor(size / 2 ^ 8) % 256, size % 256
  )
  return head .. table.concat(values)
end

-- The record with its long texts in it, packed.
local function packed_whole(job, first, last)
  local whole = job
  for field = first, last do
    if job[field] == true then
      if whole == job then whole = { unpack(job) } end
      whole[field] = text(job, field)
    end
  end
  return cmsgpack.pack(whole)
end

-- Does the lease of this token hold the job?
local function is_held(job, token)
  return job and job[STATUS] == 'running' and job[TOKEN] == token
end

-- Add the run that ends to the history: a line of JSON each.
local function remember(job, error)
  local line = '{"number":' .. job[RUNS] .. ',"began_at":' .. as_text(job[STARTED_AT]) .. ',"ended_at":' .. as_text(now)
    .. ',"worker":' .. cjson.encode(job[WORKER]) .. ',"error":' .. (error == '' and 'null' or error) .. '}'
  local history = text(job, HISTORY)
  if history ~= '' then
    local _, breaks = string.gsub(history, '\n', '')
    line = history .. '\n' .. line
    if breaks + 2 > KEPT_HISTORY then line = string.match(line, '\n(.*)') end
  end
  stow(job, HISTORY, line)
end

-- What every end of a run has in common; a request to cancel wins over what it came to.
local function end_run(job, move, error, progress, result, delay)
  local is_asked = job[IS_CANCELLING] == 1
  local final = is_asked and 'cancel' or move
  if move == 'snooze' or move == 'release' then
    job[ATTEMPTS] = job[ATTEMPTS] - 1
    job[RUNS] = job[RUNS] - 1
  else
    local tells = move == 'fail' or move == 'retry' or move == 'rescue' or (move == 'cancel' and not is_asked)
    error = tells and error or ''
    stow(job, ERROR, error)
    remember(job, error)
  end
  if progress ~= '' then job[PROGRESS] = progress end
  if final == 'succeed' then stow(job, RESULT, result) end
  if final == 'retry' or final == 'snooze' then job[RUN_AT] = now + delay end
  shift(job, final)
end
