-- with durable.lua
-- told: the id. Answers nothing for an unknown job, else what is recorded of it.
local seq = redis.call('HGET', P .. 'ids', told)
return seq and packed_state(seq)
