-- with runs.lua
-- told: how many at the most, the error as JSON.
come_due()
local limit, error = unpack(told)

-- Those whose lease has run out, the first of them first: {seq, until when it had one, the key of the leases}.
local function find_lost()
  local lost = {}
  for _, key in ipairs({ LEASES, AHEAD }) do
    local found = redis.call('ZRANGEBYSCORE', key, '-inf', now, 'WITHSCORES', 'LIMIT', 0, limit)
    for n = 1, #found, 2 do lost[#lost + 1] = { found[n], tonumber(found[n + 1]), key } end
  end
  table.sort(lost, function(one, other)
    if one[2] ~= other[2] then return one[2] < other[2] end
    return one[1] < other[1]
  end)
  for n = #lost, limit + 1, -1 do lost[n] = nil end
  return lost
end

-- Strike off what an older program has left behind when it cancelled a job: it knows no lease of what is queued.
local function clear_up(job)
  drop(AHEAD, job[SEQ])
  if job[STATUS] ~= 'running' then
    free_place(job, '')
    free_place(job, string.sub(job[KEY], 2))
    leave_queue_gate(job)
  end
end

local lost = find_lost()
if #lost == 0 then return {} end
local seqs = {}
for n, each in ipairs(lost) do seqs[n] = each[1] end
load(seqs)
local rescued = {}
for _, each in ipairs(lost) do
  local seq, _, key = unpack(each)
  local job = jobs[seq]
  if not job or (key == LEASES and job[STATUS] ~= 'running') then
    drop(key, seq)
  elseif key == AHEAD and not is_ahead(job) then
    clear_up(job)
  else
    if key == AHEAD then
      job[IS_SUSPECT] = 1
      give_back(job)
    else
      end_run(job, job[ATTEMPTS] > job[MAX_RETRIES] and 'fail' or 'rescue', error, '', '', 0)
      job[TOKEN] = ''
    end
    local told = { job[ID], job[WORKER], job[STATUS], job[TYPE], string.format('%.0f', job[ATTEMPTS]) }
    for _, value in ipairs(told) do rescued[#rescued + 1] = value end
  end
end
flush()
return rescued
