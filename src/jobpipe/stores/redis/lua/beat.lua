-- told: the name of a worker, what it says of itself, and for how many seconds it is known.
local name, info, seconds = unpack(told)
redis.call('HDEL', P .. 'workers', name)
local known = redis.call('HGETALL', P .. 'workers')
for n = 1, #known, 2 do
  if cmsgpack.unpack(known[n + 1])[1] <= now then redis.call('HDEL', P .. 'workers', known[n]) end
end
if seconds > 0 then redis.call('HSET', P .. 'workers', name, cmsgpack.pack({ now + seconds, now, info })) end
