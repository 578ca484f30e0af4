-- with logs.lua
-- told: ids, tokens, and for each a list of one chunk.
come_due()
local ids, tokens, chunks = unpack(told)
local found = load_ids(ids)
has_changes = true
flush()
for n, job in ipairs(found) do
  if is_held(job, tokens[n]) then
    write_log(job[SEQ], job[RUNS] + (is_ahead(job) and 1 or 0), tokens[n], chunks[n])
  end
end
