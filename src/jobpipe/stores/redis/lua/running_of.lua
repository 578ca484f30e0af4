-- told: a unique name. Answers the id of its job that has begun, if there is one.
come_due()
local seq = holders_of(told).running
return seq and jobs[seq][ID]
