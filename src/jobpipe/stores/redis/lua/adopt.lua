-- with inserting.lua
-- with logs.lua
-- with durable.lua
-- told: jobs as NewJob has them, and for each: attempts, runs, created_at, started_at, error, progress, history,
-- the chunks of what it logged, each with its attempt first, whether it waits for a signal, its steps, and what else is
-- recorded of it.
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
local logged, stepped = {}, {} -- seq -> chunks, steps

-- Let a new job be what it was in the store that it comes from.
local function restore(
  job, attempts, runs, created_at, started_at, error, progress, history, chunks, is_waiting, steps, entries
)
  job[ATTEMPTS], job[RUNS], job[CREATED_AT], job[STARTED_AT] = attempts, runs, created_at, started_at
  job[PROGRESS] = progress
  stow(job, ERROR, error)
  stow(job, HISTORY, history)
  if is_waiting and job[STATUS] == 'scheduled' then job[STATUS] = 'waiting' end
  if #chunks > 0 then logged[job[SEQ]] = chunks end
  if #steps > 0 then stepped[job[SEQ]] = steps end
  for _, entry in ipairs(entries) do note(durable_key(job[SEQ]), entry) end
end

for n, new in ipairs(news) do
  if not known[new[1]] then
    local job = make(new, true)
    restore(job, unpack(kept[n]))
    enter(job, lane_of(job))
    take(job)
  end
end
local count = #fresh / 2
flush()
write_entries()
for seq, steps in pairs(stepped) do
  for _, step in ipairs(steps) do write_step(seq, step) end
end
for seq, chunks in pairs(logged) do
  for start, chunk in ipairs(chunks) do write_log(seq, chunk[1], '', { { start, unpack(chunk, 2) } }) end
end
for name in pairs(names) do
  local found = holders_of(name)
  local job = found.waiting and found.running and jobs[found.waiting]
  if job and job[STATUS] == 'queued' and job[GATE] == '' then drop(change(lane_of(job), 'ready'), job[SEQ]) end
end
if next(names) then flush() end
return count
