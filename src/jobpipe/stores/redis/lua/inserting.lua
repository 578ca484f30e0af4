-- For the scripts that put jobs in.

local known = {} -- id -> record
local last_seq

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

local function make(new)
  local id, type, queue, payload, max_retries, priority, delay, run_at, deadline, fingerprint, key = unpack(new)
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
  stow(job, PAYLOAD, payload)
  jobs[job[SEQ]] = job
  known[id] = job
  has_work = true
  fresh[#fresh + 1] = id
  fresh[#fresh + 1] = job[SEQ]
  return job
end

-- {'conflict', id, is it twice?} or {'full', queue, waiting, needed}, or nil if nothing keeps the batch out.
local function objection(batch, capacity)
  local seen, needed, queues = {}, {}, {}
  for _, new in ipairs(batch) do
    if seen[new[1]] then return { 'conflict', new[1], true } end
    seen[new[1]] = true
  end
  for _, new in ipairs(batch) do
    local id, queue = new[1], new[3]
    if not known[id] then
      if not needed[queue] then queues[#queues + 1] = queue end
      needed[queue] = (needed[queue] or 0) + 1
    elseif known[id][FINGERPRINT] ~= new[10] then
      return { 'conflict', id, false }
    end
  end
  for _, queue in ipairs(capacity > 0 and queues or {}) do
    local waits = tonumber(redis.call('HGET', P .. 'waiting', queue) or 0) + (waiting[queue] or 0)
    if waits + needed[queue] > capacity then return { 'full', queue, waits, needed[queue] } end
  end
end

-- {'ok', status, is it new?, status, ...}, or the objection.
local function insert_batch(batch, capacity)
  local answer = objection(batch, capacity)
  if answer then return answer end
  answer = { 'ok' }
  for _, new in ipairs(batch) do
    local job = known[new[1]]
    local is_new = not job
    if is_new then
      job = make(new)
      enter(job, lane_of(job))
    end
    answer[#answer + 1] = job[STATUS]
    answer[#answer + 1] = is_new
  end
  return answer
end
