-- told: after which number, how many. Each entry of the stream is named after the last of its events.
come_due()
local after, limit = unpack(told)
local numbers, packed, count = {}, {}, 0
local from = string.format('(%.0f-0', after)
while count < limit do
  local entries = redis.call('XRANGE', P .. 'events', from, '+', 'COUNT', 20)
  for _, entry in ipairs(entries) do
    local last = tonumber(string.match(entry[1], '^%d+'))
    local size = tonumber(entry[2][2])
    numbers[#numbers + 1] = last - size + 1
    packed[#packed + 1] = entry[2][4]
    count = count + last - math.max(after, last - size)
    from = '(' .. entry[1]
    if count >= limit then break end
  end
  if #entries < 20 then break end
end
return { numbers, packed_list(packed) }
