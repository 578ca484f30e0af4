-- with inserting.lua
-- told: bounds (ready jobs of a queue, scheduled ones, lanes), and the batches of jobs as NewJob has them.
local refused = ask_for_room()
if refused then return refused end
come_due()
local bounds, batches = told[1], told[2]
know(batches)
local answers = {}
for n, batch in ipairs(batches) do answers[n] = insert_batch(batch, bounds) end
flush()
return cmsgpack.pack(answers)
