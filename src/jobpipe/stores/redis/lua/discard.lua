-- told: ids.
come_due()
local seqs, seen = {}, {}
for _, job in ipairs(load_ids(told)) do
  if job and not seen[job[SEQ]] and PENDING[job[STATUS]] then
    seen[job[SEQ]] = true
    seqs[#seqs + 1] = job[SEQ]
  end
end
if #seqs > 0 then forget_all(seqs) end
return #seqs
