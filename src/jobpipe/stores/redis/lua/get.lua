-- told: the id.
come_due()
local job = load_ids({ told })[1]
local seq = job and job[SEQ] or redis.call('HGET', P .. 'ids', told)
job = seq and odd[seq] or job
return job and packed_whole(job, PAYLOAD, HISTORY)
