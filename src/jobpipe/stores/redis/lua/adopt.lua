-- with inserting.lua
-- told: jobs as NewJob has them, and for each: attempts, runs, created_at, started_at, error, progress, history.
-- Answers how many were new, or the id of one that stands in the way of all.
local refused = ask_for_room()
if refused then return refused end
come_due()
local news, kept = unpack(told)
know({ news })
for _, new in ipairs(news) do
  if known[new[1]] and not is_same(known[new[1]], new) then return new[1] end
end
for n, new in ipairs(news) do
  if not known[new[1]] then
    local job = make(new)
    local attempts, runs, created_at, started_at, error, progress, history = unpack(kept[n])
    job[ATTEMPTS], job[RUNS], job[CREATED_AT], job[STARTED_AT] = attempts, runs, created_at, started_at
    job[PROGRESS] = progress
    stow(job, ERROR, error)
    stow(job, HISTORY, history)
    enter(job, lane_of(job))
    take(job)
  end
end
local count = #fresh / 2
flush()
return count
