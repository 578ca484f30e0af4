-- told: statuses, type or false, queue or false, tag or false, before (a seq) or false, how many, how the error begins or
-- false.
-- Answers the records that fit, packed in one list, and the seq from which to look on, if there may be more: so
-- many are looked at, at the most, and then the caller asks again.
come_due()
local statuses, type, queue, tag, before, limit, start = unpack(told)
local MOST_RUNNING = 20000 -- these are sorted here: the leases are in another order
local LOOKED_AT = (type or queue or start or (tag and #statuses == 1)) and math.max(limit + 1, 1000) or limit + 1
local till = before and '(' .. before or '+inf'

local seqs, is_whole = {}, true
local is_wanted = {}
for _, status in ipairs(statuses) do is_wanted[status] = true end
if tag then
  seqs = redis.call('ZREVRANGEBYSCORE', P .. 'tag:' .. tag, till, '-inf', 'LIMIT', 0, LOOKED_AT)
  is_whole = #seqs < LOOKED_AT
end
for _, status in ipairs(tag and {} or statuses) do
  if status == 'running' then
    for _, seq in ipairs(redis.call('ZREVRANGE', LEASES, 0, MOST_RUNNING - 1)) do
      if not before or tonumber(seq) < before then seqs[#seqs + 1] = seq end
    end
  else
    local found = redis.call('ZREVRANGEBYSCORE', OF_STATUS[status], till, '-inf', 'LIMIT', 0, LOOKED_AT)
    is_whole = is_whole and #found < LOOKED_AT
    for _, seq in ipairs(found) do seqs[#seqs + 1] = seq end
  end
end
table.sort(seqs, function(one, other) return one > other end)
is_whole = is_whole and #seqs <= LOOKED_AT
for n = #seqs, LOOKED_AT + 1, -1 do seqs[n] = nil end
load(seqs)

local found, last = {}, nil
for _, seq in ipairs(seqs) do
  local job = odd[seq] or jobs[seq]
  if job and (not tag or is_wanted[job[STATUS] or '']) and (not type or job[TYPE] == type) and (not queue or job[QUEUE] == queue)
    and (not start or tostring(text(job, ERROR)):sub(1, #start) == start) then
    if #found == limit then return { packed_list(found), last } end
    found[#found + 1] = packed_whole(job, ERROR, ERROR)
    last = seq
  end
end
return { packed_list(found), not is_whole and seqs[#seqs] }
