-- with logs.lua
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
local packed, logs = {}, {}
for _, seq in ipairs(seqs) do
  if jobs[seq] then
    packed[#packed + 1] = packed_whole(jobs[seq], PAYLOAD, HISTORY)
    -- Why only then: what never ran has logged nothing.
    logs[#packed] = packed_list(jobs[seq][STARTED_AT] == 0 and jobs[seq][RUNS] == 0 and {} or redis.call('LRANGE', log_key(seq), 0, -1))
  end
end
return { packed_list(packed), packed_list(logs) }
