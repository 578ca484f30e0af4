-- with lanes.lua
-- with gates.lua
-- told: worker, token, types, limit, seconds of the lease, limits by type, how many of the first begin (false: all),
-- and which queues (false: all): those that it takes (false: all others), those that it does not take, and what room
-- each has (false: they share it): how many of its jobs, and how many of these begin; and limits by queue.
-- Answers the records, the seconds after which each may start, the time, in how many seconds to ask again, and whether
-- there may be more.
come_due()
local worker, token, types, limit, lease, limits, most_begun, queues, queue_limits = unpack(told)
local rooms = queues and queues[3]
local MOST_BYTES = 16 * 2 ^ 20 -- a reply should not be much longer
local claimed, delays = {}, {} -- jobs, and the seconds after which each may start
local pasts = {} -- packed: those with more than a first run needs, as they were before
local gates = {} -- name -> gate: those that a job has come to
local closed = {} -- types with a limit of their own that was reached
local closed_queues = {} -- the same of queues
local closing = {} -- type -> arguments of ZADD: when gates before which jobs were parked open
local cooling = {} -- types
local passed_over, size = 0, 0 -- jobs, and the bytes of long payloads that were claimed
local due_in
local has_more = limit < 1
local is_cut = false -- before a suspect, or one with a unique name, of which none is claimed ahead
local full = {} -- queues with slots of their own of which no more is claimed, though there is more

local function wait(seconds)
  due_in = math.min(due_in or seconds, seconds)
end

local function gate_of(type, key, bound)
  local name = type .. '/' .. key
  gates[name] = gates[name] or new_gate(type, key, bound)
  return gates[name]
end

-- The gate of its queue, if that has a limit; false if it is closed.
local function queue_gate(job)
  local bound = queue_limits[job[QUEUE]]
  local gate = bound and gate_of('', job[QUEUE], bound)
  if gate and not is_open(gate) then
    closed_queues[job[QUEUE]] = true
    wait(opens_at(gate) - now)
    return false
  end
  return gate
end

-- In how many seconds a job may start; nothing if it has to wait: then it is parked, if its limit is keyed.
local function enter_gate(job, bound, whole)
  local is_keyed = bound and bound[4]
  if not bound or (is_keyed and job[KEY] == '') then
    if whole then whole.is_entered = true end
    return whole and pass(whole) or 0
  end
  local gate = gate_of(job[TYPE], is_keyed and string.sub(job[KEY], 2) or '', bound)
  local starts_in = pass(gate, whole)
  if starts_in then
    gate.is_entered = true
    if whole then whole.is_entered = true end
    return starts_in, gate
  end
  if is_keyed then
    passed_over = passed_over + 1
    closing[gate.type] = closing[gate.type] or {}
    table.insert(closing[gate.type], opens_at(gate))
    table.insert(closing[gate.type], gate.key)
    park(job, gate)
  else
    closed[gate.type] = true
    wait(opens_at(gate) - now)
  end
end

-- Is it a first run, with times of which dates can be made, and no trace?
local function is_plain(job)
  return not odd[job[SEQ]] and (job[TRACE] or '') == '' and job[ERROR] == '' and job[HISTORY] == '' and job[RESULT] == '' and job[PROGRESS] == ''
    and math.min(job[RUN_AT], job[CREATED_AT]) > -6e10 and math.max(job[RUN_AT], job[CREATED_AT]) < 2e11 and job[DEADLINE] >= 0
end

-- Is it one that is never claimed ahead?
local function is_alone(job)
  return job[IS_SUSPECT] == 1 or name_of(job)
end

-- May the next job of a queue with slots of its own be claimed? If not, none after it, either.
local function has_room(job)
  local room = rooms[job[QUEUE]]
  if room[1] < 1 or (room[2] < 1 and is_alone(job)) then full[job[QUEUE]] = true end
  return not full[job[QUEUE]]
end

-- Does a job that is claimed begin?
local function begins(job)
  if not rooms then return not most_begun or #claimed < most_begun end
  local room = rooms[job[QUEUE]]
  room[1], room[2] = room[1] - 1, room[2] - 1
  return room[2] >= 0
end

local function claim(job, starts_in, gate, whole)
  if not is_plain(job) then
    pasts[#pasts + 1] = packed_whole(odd[job[SEQ]] or job, PAYLOAD, HISTORY)
  end
  job[WORKER], job[TOKEN] = worker, token
  if begins(job) then
    begin(job, now + starts_in)
    add(LEASES, now + lease, job[SEQ])
  else
    status_after(job, 'begin') -- it is an error now if it could not
    leave_queue(job, lane_of(job))
    job[IS_AHEAD] = 1
    add(AHEAD, now + lease, job[SEQ])
    if job[EXPIRES_AT] then drop(EXPIRING, job[SEQ]) end
    touch(job)
  end
  if whole then add(P .. 'holders:/' .. job[QUEUE], now + starts_in, job[ID]) end
  if gate then
    job[GATE] = '=' .. gate.key
    add(P .. 'holders:' .. gate.type .. '/' .. gate.key, now + starts_in, job[ID])
  end
  if job[PAYLOAD] == true then size = size + redis.call('HSTRLEN', P .. 'texts', job[SEQ] .. ':' .. PAYLOAD) end
  claimed[#claimed + 1] = job
  delays[#delays + 1] = starts_in
end

-- Claim from the lanes of one priority, in the order of run_at and seq.
local function claim_from(cursors)
  local heap = new_heap(cursors, limit - #claimed)
  while heap[1] and #claimed < limit and passed_over < MOST_PASSED_OVER and size < MOST_BYTES do
    local cursor = heap[1]
    local job, bound, is_out = jobs[cursor.seq], limits[cursor.type], false
    if not job or job[STATUS] ~= 'queued' or job[TYPE] ~= cursor.type then
      drop(cursor.key, cursor.seq) -- only somebody else can have put it there
    elseif is_late(job, now) then
      shift(job, 'expire') -- there were more than one call ends
    elseif rooms and not has_room(job) then
      has_more, is_out = true, true
    elseif not rooms and most_begun and #claimed >= most_begun and is_alone(job) then
      is_cut = true
      break
    elseif not closed[cursor.type] then
      local starts_in, gate, whole = 0, nil, queue_gate(job)
      if whole == false then
        starts_in = nil
      elseif bound or whole then
        starts_in, gate = enter_gate(job, bound, whole)
      end
      if starts_in then claim(job, starts_in, gate, whole) end
      is_out = closed_queues[job[QUEUE]]
    end
    advance(heap, is_out or closed[cursor.type])
  end
  has_more = has_more or heap[1] ~= nil
end

-- Gates with room left open again at once. Why: those that were let out may be cancelled before their turn.
local function look_again(type, keys)
  for _, key in ipairs(keys) do
    local gate = gates[type .. '/' .. key]
    if not gate or is_open(gate) then redis.call('ZADD', P .. 'opening:' .. type, 'XX', now, key) end
  end
end

local function keep_pace()
  for _, gate in pairs(gates) do
    if gate.is_entered then
      add(P .. 'gated', 0, gate.type)
      add(P .. 'gates:' .. gate.type, 0, gate.key)
      if gate.interval > 0 then add(P .. 'pace:' .. gate.type, gate.next_at, gate.key) end
    end
  end
end

local function claim_all()
  local paused, cursors, with_room = {}, {}, {}
  for _, queue in ipairs(redis.call('SMEMBERS', P .. 'paused')) do paused[queue] = true end
  local shut = paused -- queues of which nothing is claimed
  if queues then
    local only, excluded = unpack(queues)
    shut = setmetatable({}, { __index = function(_, queue)
      return paused[queue] or excluded[queue] or (only and not only[queue])
    end })
  end
  for _, type in ipairs(types) do
    if not cooling[type] then
      with_room[type] = open_gates(type, limits[type], paused, limit)
      open_lanes(type, shut, cursors)
    end
  end
  local priorities = {}
  for priority in pairs(cursors) do priorities[#priorities + 1] = priority end
  table.sort(priorities, function(one, other) return one > other end)
  for _, priority in ipairs(priorities) do
    if #claimed < limit and not is_cut then claim_from(cursors[priority]) else has_more = true end
  end
  if passed_over == MOST_PASSED_OVER or size >= MOST_BYTES then wait(0) end
  keep_pace()
  if next(drops) then flush() end
  local packed = {}
  for n, job in ipairs(claimed) do
    packed[n] = job[PAYLOAD] == true and packed_whole(job, PAYLOAD, PAYLOAD) or stored[job[SEQ]]
  end
  for type, args in pairs(closing) do
    for first = 1, #args, AT_ONCE do
      redis.call('ZADD', P .. 'opening:' .. type, 'LT', unpack(args, first, math.min(first + AT_ONCE - 1, #args)))
    end
  end
  for type, keys in pairs(with_room) do look_again(type, keys) end
  return packed
end

for n, until_at in ipairs(#types > 0 and fetch(P .. 'cooling', types) or {}) do
  local seconds = tonumber(until_at or 0) - now
  if seconds > 0 then
    cooling[types[n]] = true
    local waits = redis.call('EXISTS', P .. 'ready-lanes:' .. types[n], P .. 'held-lanes:' .. types[n])
    if waits > 0 then wait(seconds) end
  end
end
local packed = limit > 0 and claim_all() or {}
for _, type in ipairs(types) do
  local opening = not cooling[type] and redis.call('ZRANGE', P .. 'opening:' .. type, 0, 0, 'WITHSCORES')
  if opening and opening[2] then wait(math.max(opening[2] - now, 0)) end
end
local upcoming = redis.call('ZRANGE', DUE, 0, 0, 'WITHSCORES')
if upcoming[2] then wait(math.max(upcoming[2] - now, 0)) end
return {
  packed_list(packed), cmsgpack.pack(delays), packed_list(pasts), string.format('%.17g', now),
  due_in and string.format('%.17g', due_in) or false, has_more and 1 or 0,
}
