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

-- When a new job is to run, if it was created then.
local function due_at(new, created_at)
  local at = new[8] or now + new[7]
  local max_wait = new[13] and new[13][4] or 0
  return max_wait > 0 and math.min(at, created_at + max_wait) or at
end

-- One that comes from another store runs when it is told to.
local function make(new, is_adopted)
  local id, type, queue, payload, max_retries, priority, _, run_at, deadline, fingerprint, key, _, more = unpack(new)
  last_seq = last_seq + 1
  run_at = is_adopted and run_at or due_at(new, now)
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
    job[EXPIRES_AT], job[UNIQUE], job[ON_DUPLICATE], job[MAX_WAIT], job[TAGS], expires_in, job[TRACE] = unpack(more)
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
    if due_at(new, now) <= now then
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

-- The job of a unique name that waits, and the one that runs: as they are stored.
local function look_up(name)
  local found = holders_of(name)
  local waiting = found.waiting and jobs[found.waiting]
  if waiting then known[waiting[ID]] = waiting end
  return {
    waiting = waiting and { waiting[ID], waiting[TYPE], waiting[QUEUE] }, running = found.running and jobs[found.running],
  }
end

-- Note in the plan what becomes of a new job with a unique name, as the table in unique.py says; an objection, or nothing.
local function take_up(new, named, plan)
  local id, type, queue, name, on_duplicate = new[1], new[2], new[3], new[13][2], new[13][3]
  local waiting = named.waiting
  if not waiting then
    named.waiting = { id, type, queue }
    plan.news[#plan.news + 1] = new
  elseif SECOND[on_duplicate] == 'merged' then
    if waiting[2] ~= type or waiting[3] ~= queue then return { 'duplicate', waiting[1], name } end
    if not plan.merged[waiting[1]] then plan.order[#plan.order + 1] = waiting[1] end
    plan.merged[waiting[1]] = new
  end
  plan.receipts[#plan.receipts + 1] = { named.waiting[1], not waiting }
  if CANCELLING[on_duplicate] and named.running then plan.cancelled[named.running[SEQ]] = named.running end
end

-- What to do for a batch, as admission.py says: new jobs, content for jobs that wait by their ids (in an order), jobs
-- to be cancelled, and for each of the batch its id and whether it is new. Or nothing, and {'conflict', id, is it twice?},
-- {'duplicate', id, name} or what `refusal` answers.
local function plan_of(batch, bounds)
  local plan = { news = {}, merged = {}, order = {}, cancelled = {}, receipts = {} }
  local seen, names = {}, {}
  for _, new in ipairs(batch) do
    if seen[new[1]] then return nil, { 'conflict', new[1], true } end
    seen[new[1]] = true
  end
  for _, new in ipairs(batch) do
    local id, name = new[1], new[13] and new[13][2] ~= '' and new[13][2]
    if known[id] then
      if not is_same(known[id], new) then return nil, { 'conflict', id, false } end
      plan.receipts[#plan.receipts + 1] = { id, false }
    elseif name then
      names[name] = names[name] or look_up(name)
      local objection = take_up(new, names[name], plan)
      if objection then return nil, objection end
    else
      plan.news[#plan.news + 1] = new
      plan.receipts[#plan.receipts + 1] = { id, true }
    end
  end
  local objection = refusal(plan.news, bounds)
  if objection then return nil, objection end
  return plan
end

-- A job is made: those that come after it find less room.
local function take(job)
  if job[STATUS] ~= 'queued' then taken.scheduled = taken.scheduled + 1 end
  local lane = job[QUEUE] .. '/' .. job[TYPE]
  if is_new_lane(lane) then taken.lanes = taken.lanes + 1 end
  named[lane] = true
end

-- Let a job that waits take the content of a new one, but keep its id, its fingerprint and when it was created.
local function take_over(job, new, run_at)
  local more = new[13]
  for _, tag in ipairs(job[TAGS] or {}) do
    take_back(P .. 'tag:' .. tag, job[SEQ])
    drop(P .. 'tag:' .. tag, job[SEQ])
  end
  job[MAX_RETRIES], job[PRIORITY], job[RUN_AT], job[DEADLINE], job[KEY] = new[5], new[6], run_at, new[9], new[11]
  job[EXPIRES_AT], job[ON_DUPLICATE], job[MAX_WAIT], job[TAGS] = more[1], more[3], more[4], more[5]
  job[TRACE] = more[7]
  if more[6] then job[EXPIRES_AT] = now + more[6] end
  for _, tag in ipairs(job[TAGS]) do add(P .. 'tag:' .. tag, job[SEQ], job[SEQ]) end
  stow(job, PAYLOAD, new[4])
  touch(job)
  has_changes, has_work = true, true
end

local function merge(job, new)
  local run_at = due_at(new, job[CREATED_AT])
  local status = run_at <= now and 'queued' or 'scheduled'
  local lane = lane_of(job)
  if status ~= job[STATUS] then
    status_after(job, status == 'queued' and 'come due' or 'postpone') -- it is an error if it could not
    leave(job, lane)
    take_over(job, new, run_at)
    job[STATUS] = status
    enter(job, lane_of(job))
    taken.scheduled = taken.scheduled + (status == 'scheduled' and 1 or -1)
    return
  end
  if is_ahead(job) then void_lease(job) elseif status == 'queued' then leave_queue(job, lane) end
  take_back(EXPIRING, job[SEQ])
  drop(EXPIRING, job[SEQ])
  take_over(job, new, run_at)
  if may_expire(job) then add(EXPIRING, job[EXPIRES_AT], job[SEQ]) end
  if status == 'scheduled' then
    add(DUE, run_at, job[SEQ])
  elseif not is_behind(job) then
    add(change(lane_of(job), 'ready'), run_at, job[SEQ])
  end
end

-- {'ok', id, status, is it new?, id, ...}, or the objection.
local function insert_batch(batch, bounds)
  local plan, objection = plan_of(batch, bounds)
  if objection then return objection end
  for _, new in ipairs(plan.news) do
    local job = make(new)
    enter(job, lane_of(job))
    take(job)
  end
  for _, id in ipairs(plan.order) do merge(known[id], plan.merged[id]) end
  for _, job in pairs(plan.cancelled) do cancel(job) end
  local answer = { 'ok' }
  for _, receipt in ipairs(plan.receipts) do
    local id, is_new = unpack(receipt)
    answer[#answer + 1] = id
    answer[#answer + 1] = known[id][STATUS]
    answer[#answer + 1] = is_new
  end
  return answer
end
