-- What every script begins with: the keys, the time, what the script has read so far and what it will write. Nothing
-- is written before flush(), so that a script which fails on its way leaves no trace.
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

local DUE, LEASES, ENDED = P .. 'due', P .. 'leases', P .. 'finished'
local AHEAD = P .. 'claimed-ahead' -- the leases of queued jobs. Why apart: LEASES names all that run, and no others
local FAILED = P .. 'failed' -- the failed, by when they ended. An older program, and it alone, names them in ENDED
local EXPIRING = P .. 'expiring' -- when those that wait, and never began, expire; none that has a lease
local AT_ONCE = 1000 -- arguments of one command: Lua's stack has an end
local LONG = 512 -- bytes: a longer text does not stand in the record, but by itself

local jobs = {} -- seq -> record: all that were read or made
local odd = {} -- seq -> record as it was read, with values that no script writes; in `jobs` it has others for them
local changed, is_changed = {}, {} -- seqs of the records to be written
local fresh = {} -- id, seq, id, seq, ...: of new jobs
local adds, drops = {}, {} -- key of a sorted set -> arguments of ZADD, of ZREM
local stored = {} -- seq -> the record as flush() has written it
local lanes, lane_index = {}, {} -- all that a job was in; and by queue, type and priority
local queued = {} -- queue -> by how much the queued jobs there change
local named = {} -- queue/type -> true: of the jobs that were made
local holders = {} -- unique name -> which jobs have it, see holders_of()
local parkings = {} -- key of a sorted set of parked jobs that changed -> {type, key of the gate, queue}
local left = {} -- name of a gate that a job has left -> {type, key}
local gated_queues = {} -- queue -> are there jobs in its gate?
local texts = {} -- name -> long text to be written, or false to be deleted
local events, event_count = {}, 0 -- id, type, queue, status, attempts, id, ...
local numbers = {} -- number -> as text, since the same come again and again
local has_changes, has_work = false, false -- what is to be told to who watches

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

local NUMBERS = {
  ATTEMPTS, RUNS, MAX_RETRIES, PRIORITY, RUN_AT, DEADLINE, CREATED_AT, STARTED_AT, FINISHED_AT, IS_CANCELLING,
  IS_AHEAD, IS_SUSPECT,
}
local WORDS = { WORKER, TOKEN, FINGERPRINT, KEY, GATE, PROGRESS }

local function is_number(value)
  return type(value) == 'number' and value > -math.huge and value < math.huge
end

-- Of a record with the fields that few jobs have: are these as scripts write them?
local function has_sound_rest(job)
  if job[EXPIRES_AT] ~= false and not is_number(job[EXPIRES_AT]) then return false end
  if not is_number(job[MAX_WAIT]) or type(job[TAGS]) ~= 'table' then return false end
  for _, tag in pairs(job[TAGS]) do
    if type(tag) ~= 'string' then return false end
  end
  return type(job[UNIQUE]) == 'string' and type(job[ON_DUPLICATE]) == 'string' and type(job[TRACE] or '') == 'string'
end

-- Has the record only values as scripts write them? A text that is too long to stand in it is true.
local function is_sound(job)
  for n = 1, #NUMBERS do
    if not is_number(job[NUMBERS[n]]) then return false end
  end
  for n = 1, #WORDS do
    if type(job[WORDS[n]]) ~= 'string' then return false end
  end
  for field = PAYLOAD, HISTORY do
    if job[field] ~= true and type(job[field]) ~= 'string' then return false end
  end
  return job[EXPIRES_AT] == nil or has_sound_rest(job)
end

-- Values with which no script fails, so that the job can be claimed and settled as failed.
local function mend(job)
  for _, field in ipairs(NUMBERS) do
    if not is_number(job[field]) then job[field] = 0 end
  end
  for _, field in ipairs(WORDS) do
    if type(job[field]) ~= 'string' then job[field] = '' end
  end
  for field = PAYLOAD, HISTORY do
    if job[field] ~= true and type(job[field]) ~= 'string' then job[field] = '' end
  end
  if not has_sound_rest(job) then
    for field = EXPIRES_AT, TRACE do job[field] = nil end
  end
  return job
end

-- Read the records that are not there yet. One that cannot be read, which only somebody else can have put
-- there, counts as none; so does one whose status is none, but it is shown.
local function load(seqs)
  local missing = {}
  for _, seq in ipairs(seqs) do
    if seq and not jobs[seq] then missing[#missing + 1] = seq end
  end
  for n, packed in ipairs(fetch(P .. 'jobs', missing)) do
    if packed then
      local is_read, job = pcall(cmsgpack.unpack, packed)
      if is_read and type(job) == 'table' and job[SEQ] == missing[n] then
        -- Records of the first schema end before these.
        job[IS_AHEAD], job[IS_SUSPECT] = job[IS_AHEAD] or 0, job[IS_SUSPECT] or 0
        if not NEXT[job[STATUS] or ''] or type(job[ID]) ~= 'string' then
          odd[missing[n]] = job
        elseif is_sound(job) then
          jobs[missing[n]] = job
        else
          odd[missing[n]], jobs[missing[n]] = job, mend(cmsgpack.unpack(packed))
        end
      end
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

-- Forget what add() has noted of a member; for who may leave a set in the same script in which he entered it.
local function take_back(key, member)
  local args = adds[key] or {}
  for n = #args, 2, -2 do
    if args[n] == member then
      table.remove(args, n)
      table.remove(args, n - 1)
    end
  end
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

-- Is the job claimed ahead: queued with a lease?
local function is_ahead(job)
  return job[STATUS] == 'queued' and job[IS_AHEAD] == 1
end

-- Has it an expiry, and never begun? A run that was given back, or revived from, is a begin, too.
local function may_expire(job)
  return job[EXPIRES_AT] and job[RUNS] == 0 and job[STARTED_AT] == 0
end

-- Has it expired by then?
local function is_late(job, at)
  return may_expire(job) and job[EXPIRES_AT] <= at
end

-- Does the lease of this token hold the job?
local function is_held(job, token)
  return job and job[TOKEN] == token and (job[STATUS] == 'running' or is_ahead(job))
end
