-- told: ids, tokens, and when each began: 0 for now.
come_due()
local ids, tokens, started_at = unpack(told)
local states = {}
for n, job in ipairs(load_ids(ids)) do
  local at = started_at[n] > 0 and started_at[n] or now
  if is_held(job, tokens[n]) and is_ahead(job) and is_late(job, at) then
    shift(job, 'expire')
    states[n] = 'lost'
  elseif is_held(job, tokens[n]) then
    if is_ahead(job) then
      add(LEASES, redis.call('ZSCORE', AHEAD, job[SEQ]) or now, job[SEQ])
      begin(job, at)
    end
    states[n] = job[IS_CANCELLING] == 1 and 'cancelling' or 'held'
  else
    states[n] = 'lost'
  end
end
flush()
return states
