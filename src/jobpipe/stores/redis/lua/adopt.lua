-- with inserting.lua
-- with logs.lua
-- told: jobs as NewJob has them, and for each: attempts, runs, created_at, started_at, error, progress, history,
-- and the chunks of what it logged, each with its attempt first.
-- Answers how many were new, or what stands in the way of all: an id, or the id of a job, the id of another that has the
-- same unique name, and that name.
local refused = ask_for_room()
if refused then return refused end
come_due()
local news, kept = unpack(told)
know({ news })
for _, new in ipairs(news) do
  if known[new[1]] and not is_same(known[new[1]], new) then return new[1] end
end

-- Of each unique name, those that wait, or have begun, are to be one.
local names = {}
for n, new in ipairs(news) do
  local name = not known[new[1]] and new[13] and new[13][2] ~= '' and new[13][2]
  if name then
    local found = holders_of(name)
    local own = names[name] or { waiting = found.waiting and jobs[found.waiting][ID], running = found.running and jobs[found.running][ID] }
    local kind = kept[n][4] ~= 0 and 'running' or 'waiting'
    if own[kind] then return { new[1], own[kind], name } end
    own[kind] = new[1]
    names[name] = own
  end
end
local logged = {}
for n, new in ipairs(news) do
  if not known[new[1]] then
    local job = make(new, true)
    local attempts, runs, created_at, started_at, error, progress, history, chunks = unpack(kept[n])
    job[ATTEMPTS], job[RUNS], job[CREATED_AT], job[STARTED_AT] = attempts, runs, created_at, started_at
    job[PROGRESS] = progress
    stow(job, ERROR, error)
    stow(job, HISTORY, history)
    enter(job, lane_of(job))
    take(job)
    if #chunks > 0 then logged[#logged + 1] = { job[SEQ], chunks } end
  end
end
local count = #fresh / 2
flush()
for _, log in ipairs(logged) do
  local seq, chunks = unpack(log)
  for start, chunk in ipairs(chunks) do
    write_log(seq, chunk[1], '', { { start, unpack(chunk, 2) } })
  end
end
for name in pairs(names) do
  local found = holders_of(name)
  local job = found.waiting and found.running and jobs[found.waiting]
  if job and job[STATUS] == 'queued' and job[GATE] == '' then drop(change(lane_of(job), 'ready'), job[SEQ]) end
end
if next(names) then flush() end
return count
