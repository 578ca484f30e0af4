-- with durable.lua
-- with suspending.lua
-- told: the id, the token, the name. Answers the kind of what was received, and the payload of a signal.
local id, token, name = unpack(told)
local seq = leased(id, token)
if not seq then return { 'lost' } end
local key = durable_key(seq)
local signal, wait = entry_of(key, 'signal', name), entry_of(key, 'wait', name)
local answer = { 'nothing' }
if signal then
  signal[6] = true
  note(key, signal)
  answer = { 'signal', signal[3] }
elseif is_timed_out(wait) then
  wait[4] = true
  note(key, wait)
  answer = { 'timed out' }
end
redis.call('DEL', P .. 'nothing') -- Why: see flush()
write_entries()
return answer
