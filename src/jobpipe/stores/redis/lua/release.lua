-- with runs.lua
-- told: ids, tokens, and for each the key that it has from now on, or false.
come_due()
local ids, tokens, keys = unpack(told)
local found = load_ids(ids)
local released = {}
for n, job in ipairs(found) do
  if is_held(job, tokens[n]) then
    if keys[n] then job[KEY] = keys[n] end
    if is_ahead(job) then
      give_back(job)
    else
      end_run(job, 'release', '', '', '', 0)
      job[TOKEN] = ''
    end
    released[n] = 1
  else
    released[n] = 0
  end
end
flush()
return released
