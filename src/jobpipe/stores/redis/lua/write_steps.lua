-- with durable.lua
-- told: ids, tokens, and for each a step: name, began_at, ended_at, result.
local ids, tokens, steps = unpack(told)
local recorded = {}
redis.call('DEL', P .. 'nothing') -- Why: see flush()
for n, job in ipairs(load_ids(ids)) do
  recorded[n] = is_held(job, tokens[n]) and 1 or 0
  if recorded[n] == 1 then write_step(job[SEQ], steps[n]) end
end
return recorded
