-- told: ids.
come_due()
local found = {}
for n, job in ipairs(load_ids(told)) do
  found[n] = job and job[STATUS] or ''
  if job then cancel(job) end
end
flush()
return found
