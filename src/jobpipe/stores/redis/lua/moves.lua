-- How a job changes: its lane, its gate, and every set in which it is found.
-- A status changes in shift() alone, as NEXT says.

-- The jobs of a type, queue and priority. `ready` and `held` are the keys of those that may be claimed and those that are
-- parked, sorted by run_at; counts and totals are what changes of how many have, and ever had, each status.
local function lane_of(job)
  local of_queue = lane_index[job[QUEUE]] or {}
  lane_index[job[QUEUE]] = of_queue
  local of_type = of_queue[job[TYPE]] or {}
  of_queue[job[TYPE]] = of_type
  local lane = of_type[job[PRIORITY]]
  if not lane then
    local name = job[PRIORITY] .. '/' .. job[QUEUE]
    lane = {
      type = job[TYPE], queue = job[QUEUE], name = name, counts = {}, totals = {}, changed = {},
      ready = P .. 'ready:' .. job[TYPE] .. '/' .. name, held = P .. 'held:' .. job[TYPE] .. '/' .. name,
    }
    of_type[job[PRIORITY]] = lane
    lanes[#lanes + 1] = lane
  end
  return lane
end

local function tally(lane, status, change)
  lane.counts[status] = (lane.counts[status] or 0) + change
  if change > 0 then lane.totals[status] = (lane.totals[status] or 0) + change end
  if status == 'queued' then queued[lane.queue] = (queued[lane.queue] or 0) + change end
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

-- Has the job a unique name? Then the name.
local function name_of(job)
  return job[UNIQUE] and job[UNIQUE] ~= '' and job[UNIQUE]
end

local function leave_queue(job, lane)
  if job[GATE] == '' then
    if name_of(job) then take_back(lane.ready, job[SEQ]) end
    drop(change(lane, 'ready'), job[SEQ])
  else
    drop(change(lane, 'held'), job[SEQ])
    drop(parking_of(job))
    job[GATE] = ''
  end
end

local function free_place(job, gate)
  local name = job[TYPE] .. '/' .. gate
  drop(P .. 'holders:' .. name, job[ID])
  left[name] = { job[TYPE], gate }
end

-- Give up the place in the gate of its queue, if there is one: who has a lease holds one.
local function leave_queue_gate(job)
  local queue = job[QUEUE]
  if gated_queues[queue] == nil then
    gated_queues[queue] = redis.call('EXISTS', P .. 'holders:/' .. queue) == 1
  end
  if gated_queues[queue] then
    drop(P .. 'holders:/' .. queue, job[ID])
    left['/' .. queue] = { '', queue }
  end
end

local function leave_gate(job)
  leave_queue_gate(job)
  if job[GATE] ~= '' then
    free_place(job, string.sub(job[GATE], 2))
    job[GATE] = ''
  end
end

-- End the lease of a job that was claimed ahead and does not begin.
local function void_lease(job)
  drop(AHEAD, job[SEQ])
  leave_gate(job)
  job[IS_AHEAD], job[TOKEN] = 0, ''
end

-- The seqs of the jobs of a unique name that are not finished: {waiting, running}, false where there is none.
local function holders_of(name)
  local found = holders[name]
  if not found then
    local seqs = redis.call('HMGET', P .. 'unique', 'waiting/' .. name, 'running/' .. name)
    load(seqs)
    found = { waiting = false, running = false }
    for n = 1, 2 do -- Why looked at: a program of an older version that begins or ends a job does not note it there
      local job = seqs[n] and jobs[seqs[n]]
      if job and not FINISHED[job[STATUS]] then found[job[STARTED_AT] == 0 and 'waiting' or 'running'] = seqs[n] end
    end
    holders[name] = found
  end
  return found
end

-- Does the job wait for another of its name, which has begun? Then it is queued, but not among those that are ready.
local function is_behind(job)
  local name = job[STARTED_AT] == 0 and name_of(job)
  return name and holders_of(name).running
end

-- The job of a name that ran has ended: the one that waits for it, if there is one, is ready.
local function let_in(name)
  local found = holders_of(name)
  local job = found.waiting and not found.running and jobs[found.waiting]
  if job and job[STATUS] == 'queued' and job[GATE] == '' and not is_ahead(job) then
    add(change(lane_of(job), 'ready'), job[RUN_AT], job[SEQ])
    has_work = true
  end
end

local function leave_name(job)
  local found = holders_of(job[UNIQUE])
  for _, key in ipairs({ OF_STATUS[job[STATUS]], DUE, EXPIRING }) do take_back(key, job[SEQ]) end
  if found.waiting == job[SEQ] then found.waiting = false end
  if found.running == job[SEQ] then found.running = false end
  found.is_changed = true
end

local function enter_name(job)
  local found = holders_of(job[UNIQUE])
  if job[STARTED_AT] == 0 then found.waiting = job[SEQ] else found.running = job[SEQ] end
  found.is_changed = true
end

local function leave(job, lane, move)
  local status, seq = job[STATUS], job[SEQ]
  tally(lane, status, -1)
  if name_of(job) then leave_name(job) end
  if status == 'running' then -- the leases name them all
    drop(LEASES, seq)
    leave_gate(job)
    job[IS_CANCELLING] = 0
    return
  end
  drop(OF_STATUS[status], seq)
  if job[EXPIRES_AT] then drop(EXPIRING, seq) end
  if is_ahead(job) then
    if move == 'begin' then drop(AHEAD, seq) else void_lease(job) end
  elseif status == 'queued' then
    leave_queue(job, lane)
  elseif PENDING[status] then
    drop(DUE, seq)
  else
    drop(ENDED, seq)
    if status == 'failed' then drop(FAILED, seq) end
  end
end

-- Who enters a job as `running` adds its lease, if it is not to end at once.
local function enter(job, lane)
  local status, seq = job[STATUS], job[SEQ]
  tally(lane, status, 1)
  if status ~= 'running' then add(OF_STATUS[status], seq, seq) end
  if PENDING[status] and may_expire(job) then add(EXPIRING, job[EXPIRES_AT], seq) end
  if name_of(job) and not FINISHED[status] then enter_name(job) end
  if status == 'queued' then
    if not is_behind(job) then add(change(lane, 'ready'), job[RUN_AT], seq) end
  elseif PENDING[status] then
    add(DUE, job[RUN_AT], seq)
  elseif FINISHED[status] then
    add(status == 'failed' and FAILED or ENDED, job[FINISHED_AT], seq)
  end
  local n = event_count * 5
  events[n + 1], events[n + 2], events[n + 3], events[n + 4], events[n + 5] =
    job[ID], job[TYPE], job[QUEUE], status, job[ATTEMPTS]
  event_count = event_count + 1
  touch(job)
end

-- The status to which a move leads.
local function status_after(job, move)
  local status = NEXT[job[STATUS]][move]
  if not status then error('the transition table knows no ' .. move .. ' of a job that is ' .. job[STATUS]) end
  return status
end

-- The only way in which a status changes.
local function shift(job, move)
  local status = status_after(job, move)
  local lane = lane_of(job)
  leave(job, lane, move)
  job[STATUS], job[IS_AHEAD] = status, 0
  if FINISHED[status] then job[FINISHED_AT] = now end
  -- Why not what comes due: who claims knows when it does, and asks then.
  if PENDING[status] and move ~= 'come due' then has_work = true end
  enter(job, lane)
  if FINISHED[status] and name_of(job) then let_in(job[UNIQUE]) end
end

-- Cancel a job: at once if it waits; one that runs is told.
local function cancel(job)
  if job[STATUS] == 'running' then
    job[IS_CANCELLING] = 1
    touch(job)
    has_changes = true
  elseif NEXT[job[STATUS]].cancel then
    shift(job, 'cancel')
  end
end

-- Let a run of a job begin.
local function begin(job, started_at)
  job[ATTEMPTS] = job[ATTEMPTS] + 1
  job[RUNS] = job[RUNS] + 1
  job[STARTED_AT], job[PROGRESS] = started_at, ''
  shift(job, 'begin')
end
