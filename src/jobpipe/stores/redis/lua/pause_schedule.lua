-- told: the name.
local entry = redis.call('HGET', P .. 'schedules', told)
if not entry then return 0 end
entry = cmsgpack.unpack(entry)
entry[7] = true
redis.call('DEL', P .. 'nothing') -- Why: see flush()
redis.call('HSET', P .. 'schedules', told, cmsgpack.pack(entry))
return 1
