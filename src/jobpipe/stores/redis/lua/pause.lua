-- told: the queue, and whether it is to be paused or to go on.
come_due()
redis.call('DEL', P .. 'nothing') -- Why: see flush()
redis.call(told[2] and 'SADD' or 'SREM', P .. 'paused', told[1])
if not told[2] then
  -- Whatever is parked may have a reason less to be: the first of it is looked at at once, the rest within seconds.
  for _, type in ipairs(redis.call('ZRANGE', P .. 'gated', 0, -1)) do
    for _, key in ipairs(redis.call('ZRANGE', P .. 'opening:' .. type, 0, 999)) do
      redis.call('ZADD', P .. 'opening:' .. type, now, key)
    end
  end
end
has_changes, has_work = true, not told[2]
tell()
