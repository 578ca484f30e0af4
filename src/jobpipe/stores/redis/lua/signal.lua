-- with durable.lua
-- with suspending.lua
-- told: the id, and of the signal: name, payload, fingerprint.
-- Answers what became of it; nothing for an unknown job.
local room = redis.pcall('INCRBY', P .. 'seq', 0) -- an error if the server is full
come_due()
local id, name, payload, fingerprint = unpack(told)
local job = load_ids({ id })[1]
if not job then return false end
local key = durable_key(job[SEQ])
local known, wait = entry_of(key, 'signal', name), entry_of(key, 'wait', name)

-- As in model/durable.py.
local function answer_signal(status, known, fingerprint, is_timed_out, kept)
  if known then return known == fingerprint and 'same' or 'conflict' end
  if FINISHED[status] then return 'finished' end
  if is_timed_out then return 'timed out' end
  return kept >= MOST_SIGNALS and 'full' or 'accepted'
end

local kept = #names_of(key, 'signal')
local answer = answer_signal(job[STATUS], known and known[4], fingerprint, is_timed_out(wait), kept)
if answer == 'accepted' then
  local is_awaited = job[STATUS] == 'waiting' and wait
  -- Why not that one: jobs that a full server has must be able to end.
  if type(room) == 'table' and not is_awaited then return room end
  if is_awaited then go_on(job) end
  note(key, { 'signal', name, payload, fingerprint, now, false })
  has_changes = true
  flush()
  write_entries()
end
return answer
