-- told: ids, tokens, progress as JSON.
come_due()
local ids, tokens, reports = unpack(told)
for n, job in ipairs(load_ids(ids)) do
  if is_held(job, tokens[n]) and job[STATUS] == 'running' then
    job[PROGRESS] = reports[n]
    touch(job)
    has_changes = true
  end
end
flush()
