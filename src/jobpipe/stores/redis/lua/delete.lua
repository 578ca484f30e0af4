-- told: ids. Answers the status of each, as it was found.
come_due()
local found, seqs, gone = {}, {}, {}
for n, job in ipairs(load_ids(told)) do
  found[n] = job and not gone[job[SEQ]] and job[STATUS] or ''
  if job and FINISHED[job[STATUS]] and not gone[job[SEQ]] then
    gone[job[SEQ]] = true
    seqs[#seqs + 1] = job[SEQ]
  end
end
has_changes = #seqs > 0
if #seqs > 0 then forget_all(seqs) end
return found
