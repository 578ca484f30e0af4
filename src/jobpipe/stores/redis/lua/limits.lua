-- told: type or false, key or false, how many, and the queues whose gates are asked for.
-- Answers the time, the gates in the order of their names (type, key, next_at, how many run, the first of them), the
-- types that are cooling, and the gates of the queues.
come_due()
local type, key, limit, queues = unpack(told)
local AT_A_TIME = 100
local found = {}

local function look(type, key, found, is_shown)
  local next_at = tonumber(redis.call('ZSCORE', P .. 'pace:' .. type, key) or 0)
  local holders = P .. 'holders:' .. type .. '/' .. key
  local running = redis.call('ZCARD', holders)
  if next_at <= now then next_at = 0 end
  if is_shown or next_at > 0 or running > 0 then
    found[#found + 1] = { type, key, next_at, running, redis.call('ZRANGE', holders, 0, 19) }
  end
end

for _, type in ipairs(type and { type } or redis.call('ZRANGE', P .. 'gated', 0, -1)) do
  local offset, keys = 0, nil
  while type ~= '' and #found < limit and not key and offset < 20 * AT_A_TIME do
    keys = redis.call('ZRANGE', P .. 'gates:' .. type, offset, offset + AT_A_TIME - 1)
    for _, each in ipairs(keys) do
      if #found < limit then look(type, each, found) end
    end
    if #keys < AT_A_TIME then break end
    offset = offset + AT_A_TIME
  end
  if type ~= '' and key and #found < limit then look(type, key, found) end
end
local cooling = {}
local known = redis.call('HGETALL', P .. 'cooling')
for n = 1, #known, 2 do
  if tonumber(known[n + 1]) > now then cooling[#cooling + 1] = { known[n], tonumber(known[n + 1]) } end
end
local of_queues = {}
for _, queue in ipairs(queues) do look('', queue, of_queues, true) end
return cmsgpack.pack({ now, found, cooling, of_queues })
