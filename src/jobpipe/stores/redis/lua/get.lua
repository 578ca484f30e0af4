-- told: the id.
come_due()
local job = load_ids({ told })[1]
return job and packed_whole(job, PAYLOAD, HISTORY)
