-- with names.lua
-- told: seconds to keep, how many at the most.
come_due()
local keep, limit = unpack(told)

-- Forget the gates that hold nothing up, and the types that have cooled down.
for _, type in ipairs(redis.call('ZRANGE', P .. 'gated', 0, -1)) do
  for _, key in ipairs(redis.call('ZRANGEBYSCORE', P .. 'pace:' .. type, '-inf', now, 'LIMIT', 0, 1000)) do
    local is_held = redis.call('EXISTS', P .. 'holders:' .. type .. '/' .. key) == 1
    if not is_held and not redis.call('ZSCORE', P .. 'opening:' .. type, key) then
      redis.call('ZREM', P .. 'pace:' .. type, key)
      redis.call('ZREM', P .. 'gates:' .. type, key)
    end
  end
  if redis.call('EXISTS', P .. 'gates:' .. type, P .. 'opening:' .. type) == 0 then
    redis.call('ZREM', P .. 'gated', type)
  end
end
local cooling = redis.call('HGETALL', P .. 'cooling')
for n = 1, #cooling, 2 do
  if tonumber(cooling[n + 1]) <= now then redis.call('HDEL', P .. 'cooling', cooling[n]) end
end

local till = string.format('(%.17g', now - keep)
local seqs = redis.call('ZRANGEBYSCORE', ENDED, '-inf', till, 'LIMIT', 0, limit)
if #seqs > 0 then
  load(seqs)
  forget_all(seqs, ENDED)
end
if #seqs < limit then recount() end
return #seqs
