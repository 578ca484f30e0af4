-- with durable.lua
-- told: ids, tokens, and for each a step: name, began_at, ended_at, result.
local ids, tokens, steps = unpack(told)
local recorded = {}
redis.call('DEL', P .. 'nothing') -- Why: see flush()
for n, id in ipairs(ids) do
  local seq = leased(id, tokens[n])
  if seq then write_step(seq, steps[n]) end
  recorded[n] = seq and 1 or 0
end
return recorded
