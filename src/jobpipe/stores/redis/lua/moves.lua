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

local function leave_queue(job, lane)
  if job[GATE] == '' then
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

local function leave_gate(job)
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

local function leave(job, lane, move)
  local status, seq = job[STATUS], job[SEQ]
  tally(lane, status, -1)
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
  elseif status == 'scheduled' then
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
  if WAITING[status] and may_expire(job) then add(EXPIRING, job[EXPIRES_AT], seq) end
  if status == 'queued' then
    add(change(lane, 'ready'), job[RUN_AT], seq)
  elseif status == 'scheduled' then
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
  if WAITING[status] and move ~= 'come due' then has_work = true end
  enter(job, lane)
end

-- Let a run of a job begin.
local function begin(job, started_at)
  job[ATTEMPTS] = job[ATTEMPTS] + 1
  job[RUNS] = job[RUNS] + 1
  job[STARTED_AT], job[PROGRESS] = started_at, ''
  shift(job, 'begin')
end
