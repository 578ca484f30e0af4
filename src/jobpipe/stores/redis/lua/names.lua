-- For the scripts that tidy up: what is kept of each name, from the counts, which are always exact.

-- Forget the counts of lanes that have no jobs. Their totals stay with their type, in fields without a queue, as long as
-- it has jobs. What is added up elsewhere is set right: an older program does not know of it.
local function recount()
  redis.call('DEL', P .. 'nothing', P .. 'waiting', P .. 'queued', P .. 'names') -- Why nothing: see flush()
  local counts = redis.call('HGETALL', P .. 'counts')
  local is_lane, is_type, queued = {}, {}, {}
  for n = 1, #counts, 2 do
    local queue, type, status = string.match(counts[n], '^([^/]*)/([^/]*)/(.*)$')
    local count = tonumber(counts[n + 1])
    if count > 0 then
      is_lane[queue .. '/' .. type], is_type[type] = true, true
      if status == 'queued' then queued[queue] = (queued[queue] or 0) + count end
    end
  end
  for queue, count in pairs(queued) do redis.call('HSET', P .. 'queued', queue, count) end
  for lane in pairs(is_lane) do redis.call('SADD', P .. 'names', lane) end
  local totals = redis.call('HGETALL', P .. 'totals')
  for n = 1, #totals, 2 do
    local queue, type, status = string.match(totals[n], '^([^/]*)/([^/]*)/(.*)$')
    if not is_type[type] or (queue ~= '' and not is_lane[queue .. '/' .. type]) then
      redis.call('HDEL', P .. 'counts', totals[n])
      redis.call('HDEL', P .. 'totals', totals[n])
      if is_type[type] then redis.call('HINCRBY', P .. 'totals', '/' .. type .. '/' .. status, totals[n + 1]) end
    end
  end
end
