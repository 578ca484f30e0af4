-- told: the name, the tick at which it stands, the one with which it goes on.
local name, tick_at, next_at = unpack(told)
local entry = redis.call('HGET', P .. 'schedules', name)
entry = entry and cmsgpack.unpack(entry)
if not entry or entry[3] ~= tick_at or not entry[7] then return 0 end
entry[3], entry[7] = next_at, false
redis.call('DEL', P .. 'nothing') -- Why: see flush()
redis.call('HSET', P .. 'schedules', name, cmsgpack.pack(entry))
return 1
