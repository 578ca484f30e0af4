-- with logs.lua
-- with durable.lua
-- told: how many, after which number.
-- Answers the records, the chunks that each has logged, and what is recorded of each: empty for nothing.
come_due()
local limit, after = unpack(told)
local seqs = {}
for status in pairs(PENDING) do
  local from = string.format('(%.0f', after)
  for _, seq in ipairs(redis.call('ZRANGEBYSCORE', OF_STATUS[status], from, '+inf', 'LIMIT', 0, limit)) do
    seqs[#seqs + 1] = seq
  end
end
table.sort(seqs)
for n = #seqs, limit + 1, -1 do seqs[n] = nil end
load(seqs)
local packed, logs, states = {}, {}, {}
for _, seq in ipairs(seqs) do
  if jobs[seq] then
    packed[#packed + 1] = packed_whole(jobs[seq], PAYLOAD, HISTORY)
    -- Why only then: what never ran has logged nothing.
    logs[#packed] = packed_list(jobs[seq][STARTED_AT] == 0 and jobs[seq][RUNS] == 0 and {} or redis.call('LRANGE', log_key(seq), 0, -1))
    local is_durable = redis.call('EXISTS', steps_key(seq), durable_key(seq)) > 0
    states[#packed] = is_durable and packed_state(seq) or packed_list({})
  end
end
return { packed_list(packed), packed_list(logs), packed_list(states) }
