-- For the scripts that keep what is recorded of jobs: two hashes each, which are there only while something is in them.
-- They write after flush(), which lets them write on a server without memory to spare.

-- In `steps`, by name: {its place in their order, name, began_at, ended_at, result}. In `durable`, by kind and name:
-- {'sleep', name, until}, {'wait', name, until, has it timed out?}, {'signal', name, payload, fingerprint, sent_at, was
-- it used?}.
local sets, dels = {}, {} -- key of a hash -> arguments of HSET, of HDEL: see write_entries()

local function steps_key(seq)
  return P .. 'steps:' .. seq
end

local function durable_key(seq)
  return P .. 'durable:' .. seq
end

-- The seq of a job whose lease is held, else nothing. Why without load(): a step waits for this, and needs no more of it.
local function leased(id, token)
  local seq = redis.call('HGET', P .. 'ids', id)
  local is_read, job = pcall(cmsgpack.unpack, seq and redis.call('HGET', P .. 'jobs', seq) or '')
  return is_read and type(job) == 'table' and is_held(job, token) and seq or nil
end

-- Record a step, unless one of its name is there.
local function write_step(seq, step)
  local key = steps_key(seq)
  redis.call('HSETNX', key, step[1], cmsgpack.pack({ redis.call('HLEN', key), unpack(step) }))
end

-- What is recorded there of that kind and name; nothing where no script can have written it.
local function entry_of(key, kind, name)
  local packed = redis.call('HGET', key, kind .. '/' .. name)
  local is_read, entry = pcall(cmsgpack.unpack, packed or '')
  if not packed or not is_read or type(entry) ~= 'table' then return nil end
  local is_sound = is_number(entry[3])
  if kind == 'signal' then is_sound = type(entry[3]) == 'string' and type(entry[4]) == 'string' end
  return is_sound and entry or nil
end

-- The names of a kind that are recorded there.
local function names_of(key, kind)
  local names = {}
  for _, field in ipairs(redis.call('HKEYS', key)) do
    names[#names + 1] = string.match(field, '^' .. kind .. '/(.*)$')
  end
  return names
end

local function note(key, entry)
  local args = sets[key] or {}
  sets[key] = args
  args[#args + 1] = entry[1] .. '/' .. entry[2]
  args[#args + 1] = cmsgpack.pack(entry)
end

local function strike(key, kind, name)
  local args = dels[key] or {}
  dels[key] = args
  args[#args + 1] = kind .. '/' .. name
end

-- Write what was noted and struck.
local function write_entries()
  for key, args in pairs(dels) do many('HDEL', key, args) end
  for key, args in pairs(sets) do many('HSET', key, args) end
end

-- All that is recorded of a job, packed: its steps, and the rest.
local function packed_state(seq)
  return packed_list({
    packed_list(redis.call('HVALS', steps_key(seq))), packed_list(redis.call('HVALS', durable_key(seq))),
  })
end
