-- For the scripts that put jobs in.

local known = {} -- id -> record
local last_seq
local taken = { scheduled = 0, lanes = 0 } -- by how much the batches before have changed what bounds are held against

-- The error of a server that is full; nothing is written then. Why first: see flush().
local function ask_for_room()
  last_seq = redis.pcall('INCRBY', P .. 'seq', 0)
  if type(last_seq) == 'table' then return last_seq end
end

-- Look up which of the jobs are there already.
local function know(batches)
  local ids = {}
  for _, batch in ipairs(batches) do
    for _, new in ipairs(batch) do ids[#ids + 1] = new[1] end
  end
  for n, job in ipairs(load_ids(ids)) do
    if job then known[ids[n]] = job end
  end
end

-- Is the job that has the id of a new one this very job, perhaps with a former default filled in?
local function is_same(job, new)
  if job[FINGERPRINT] == new[10] then return true end
  for _, former in ipairs(new[12]) do
    if job[FINGERPRINT] == former then return true end
  end
  return false
end

local function make(new)
  local id, type, queue, payload, max_retries, priority, delay, run_at, deadline, fingerprint, key, _, more = unpack(new)
  last_seq = last_seq + 1
  run_at = run_at or now + delay
  local job = {}
  job[SEQ], job[ID], job[TYPE], job[QUEUE] = string.format('%014.0f', last_seq), id, type, queue
  job[STATUS] = run_at <= now and 'queued' or 'scheduled'
  job[ATTEMPTS], job[RUNS], job[MAX_RETRIES], job[PRIORITY] = 0, 0, max_retries, priority
  job[RUN_AT], job[DEADLINE], job[CREATED_AT], job[STARTED_AT], job[FINISHED_AT] = run_at, deadline, now, 0, 0
  job[WORKER], job[TOKEN], job[IS_CANCELLING] = '', '', 0
  job[FINGERPRINT], job[KEY], job[GATE], job[PROGRESS] = fingerprint, key, '', ''
  job[RESULT], job[ERROR], job[HISTORY], job[IS_AHEAD], job[IS_SUSPECT] = '', '', '', 0, 0
  if more then
    local expires_in
    job[EXPIRES_AT], job[UNIQUE], job[ON_DUPLICATE], job[MAX_WAIT], job[TAGS], expires_in = unpack(more)
    if expires_in then job[EXPIRES_AT] = now + expires_in end
    for _, tag in ipairs(job[TAGS]) do add(P .. 'tag:' .. tag, job[SEQ], job[SEQ]) end
  end
  stow(job, PAYLOAD, payload)
  jobs[job[SEQ]] = job
  known[id] = job
  has_work = true
  fresh[#fresh + 1] = id
  fresh[#fresh + 1] = job[SEQ]
  return job
end

-- Has no job of this queue/type been here since the names without jobs were forgotten?
local function is_new_lane(lane)
  return named[lane] == nil and redis.call('SISMEMBER', P .. 'names', lane) == 0
end

-- What the new jobs of a batch would take: queues that get more ready jobs and how many, those that get scheduled
-- ones and how many in all, and the lanes that are new.
local function need_of(news)
  local need = { queues = {}, ready = {}, later = {}, scheduled = 0, lanes = {} }
  local seen = {}
  for _, new in ipairs(news) do
    local type, queue = new[2], new[3]
    if (new[8] or now + new[7]) <= now then
      if not need.ready[queue] then need.queues[#need.queues + 1] = queue end
      need.ready[queue] = (need.ready[queue] or 0) + 1
    else
      need.later[#need.later + 1] = queue
      need.scheduled = need.scheduled + 1
    end
    local lane = queue .. '/' .. type
    if not seen[lane] and is_new_lane(lane) then need.lanes[#need.lanes + 1] = { queue, type } end
    seen[lane] = true
  end
  return need
end

-- The bound that has no room, as `refusal` of admission.py has it, in its order; nil if all have.
local function refusal(news, bounds)
  local ready, scheduled, names = unpack(bounds)
  if ready + scheduled + names == 0 then return end
  local need = need_of(news)
  for _, queue in ipairs(ready > 0 and need.queues or {}) do
    local waits = tonumber(redis.call('HGET', P .. 'queued', queue) or 0) + (queued[queue] or 0)
    if waits + need.ready[queue] > ready then return { 'full', queue, waits, need.ready[queue] } end
  end
  if scheduled > 0 and need.scheduled > 0 then
    local waits = redis.call('ZCARD', DUE) + taken.scheduled
    if waits + need.scheduled > scheduled then return { 'scheduled', need.later[1], waits, need.scheduled } end
  end
  if names > 0 and #need.lanes > 0 and redis.call('SCARD', P .. 'names') + taken.lanes + #need.lanes > names then
    table.sort(need.lanes, function(one, other)
      if one[1] ~= other[1] then return one[1] < other[1] end
      return one[2] < other[2]
    end)
    return { 'names', unpack(need.lanes[1]) }
  end
end

-- {'conflict', id, is it twice?} or what `refusal` answers, or nil if nothing keeps the batch out.
local function objection(batch, bounds)
  local seen, news = {}, {}
  for _, new in ipairs(batch) do
    if seen[new[1]] then return { 'conflict', new[1], true } end
    seen[new[1]] = true
  end
  for _, new in ipairs(batch) do
    local id = new[1]
    if not known[id] then
      news[#news + 1] = new
    elseif not is_same(known[id], new) then
      return { 'conflict', id, false }
    end
  end
  return refusal(news, bounds)
end

-- A job is made: those that come after it find less room.
local function take(job)
  if job[STATUS] == 'scheduled' then taken.scheduled = taken.scheduled + 1 end
  local lane = job[QUEUE] .. '/' .. job[TYPE]
  if is_new_lane(lane) then taken.lanes = taken.lanes + 1 end
  named[lane] = true
end

-- {'ok', status, is it new?, status, ...}, or the objection.
local function insert_batch(batch, bounds)
  local answer = objection(batch, bounds)
  if answer then return answer end
  answer = { 'ok' }
  for _, new in ipairs(batch) do
    local job = known[new[1]]
    local is_new = not job
    if is_new then
      job = make(new)
      enter(job, lane_of(job))
      take(job)
    end
    answer[#answer + 1] = job[STATUS]
    answer[#answer + 1] = is_new
  end
  return answer
end
