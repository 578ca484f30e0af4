-- told: how many, after which number.
come_due()
local limit, after = unpack(told)
local seqs = {}
for _, status in ipairs({ 'queued', 'scheduled' }) do
  local from = string.format('(%.0f', after)
  for _, seq in ipairs(redis.call('ZRANGEBYSCORE', OF_STATUS[status], from, '+inf', 'LIMIT', 0, limit)) do
    seqs[#seqs + 1] = seq
  end
end
table.sort(seqs)
for n = #seqs, limit + 1, -1 do seqs[n] = nil end
load(seqs)
local packed = {}
for _, seq in ipairs(seqs) do
  if jobs[seq] then packed[#packed + 1] = packed_whole(jobs[seq], PAYLOAD, HISTORY) end
end
return packed_list(packed)
