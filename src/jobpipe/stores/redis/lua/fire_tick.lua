-- with inserting.lua
-- told: the name, the tick, the next one, a job (as NewJob has it) or false, bounds.
-- Answers like insert for one batch; nothing if it is not the next tick, or paused, or there is no job.
local name, tick_at, next_at, new, bounds = unpack(told)
local entry = redis.call('HGET', P .. 'schedules', name)
entry = entry and cmsgpack.unpack(entry)
if not entry or entry[3] ~= tick_at or entry[7] then return false end
local refused = new and ask_for_room()
if refused then return refused end
come_due()
local answer = false
if new then
  know({ { new } })
  answer = insert_batch({ new }, bounds)
  if answer[1] ~= 'ok' then return cmsgpack.pack(answer) end
  entry[4], entry[5] = tick_at, new[1]
end
entry[3] = next_at
flush()
redis.call('HSET', P .. 'schedules', name, cmsgpack.pack(entry))
return answer and cmsgpack.pack(answer)
