-- told: the id.
come_due()
local job = load_ids({ told })[1]
if not job or job[STATUS] ~= 'queued' then return 0 end

-- How many of a sorted set come before a job of this run_at and seq: those of its own time are in the order of seq,
-- so that a binary search finds the first that comes after it.
local function before(key)
  local run_at = string.format('%.17g', job[RUN_AT])
  local low = redis.call('ZCOUNT', key, '-inf', '(' .. run_at)
  local high = redis.call('ZCOUNT', key, '-inf', run_at)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if redis.call('ZRANGE', key, middle, middle)[1] < job[SEQ] then low = middle + 1 else high = middle end
  end
  return low
end

local count = 0
for _, field in ipairs(redis.call('HKEYS', P .. 'counts')) do
  local queue, type = string.match(field, '^([^/]*)/([^/]*)/queued$')
  for _, kind in ipairs(queue == job[QUEUE] and { 'ready', 'held' } or {}) do
    for _, lane in ipairs(redis.call('SMEMBERS', P .. kind .. '-lanes:' .. type)) do
      local name, other = string.match(lane, '^(-?%d+)/(.*)$')
      local key, priority = P .. kind .. ':' .. type .. '/' .. lane, tonumber(name)
      if other == queue and priority > job[PRIORITY] then
        count = count + redis.call('ZCARD', key)
      elseif other == queue and priority == job[PRIORITY] then
        count = count + before(key)
      end
    end
  end
end
return count
