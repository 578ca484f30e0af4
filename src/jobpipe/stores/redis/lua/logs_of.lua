-- with logs.lua
-- told: the id, and the number of lines that are known. Answers nothing for an unknown job, else its chunks; those that
-- are known without their lines.
local id, after = unpack(told)
local seq = redis.call('HGET', P .. 'ids', id)
if not seq then return false end
local found, number = {}, 0
for n, packed in ipairs(redis.call('LRANGE', log_key(seq), 0, -1)) do
  local chunk = cmsgpack.unpack(packed)
  number = number + chunk[CUT] + chunk[COUNT]
  found[n] = { chunk[ATTEMPT], chunk[CUT], chunk[COUNT], chunk[SIZE], number > after and chunk[LINES] or '[]' }
end
return cmsgpack.pack(found)
