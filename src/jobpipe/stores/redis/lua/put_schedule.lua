-- told: the name, and the entry: timing, anchor_at, next_at, last_at, last_job, body, is_paused.
local name, entry = unpack(told)
local known = redis.call('HGET', P .. 'schedules', name)
if known then
  known = cmsgpack.unpack(known)
  entry[4], entry[5] = known[4], known[5]
  entry[7] = known[7] or entry[7] -- an older program has put in none
  if known[1] == entry[1] then entry[2], entry[3] = known[2], known[3] end
end
local packed = cmsgpack.pack(entry)
if known then redis.call('DEL', P .. 'nothing') end -- Why: see flush(); programs declare theirs at each start
redis.call('HSET', P .. 'schedules', name, packed)
return packed
