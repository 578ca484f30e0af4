-- told: seconds, ids, tokens.
come_due()
local seconds, ids, tokens = unpack(told)
local states = {}
for n, job in ipairs(load_ids(ids)) do
  if is_held(job, tokens[n]) then
    add(is_ahead(job) and AHEAD or LEASES, now + seconds, job[SEQ])
    states[n] = job[IS_CANCELLING] == 1 and 'cancelling' or 'held'
  else
    states[n] = 'lost'
  end
end
flush()
return states
