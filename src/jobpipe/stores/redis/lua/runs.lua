-- For the scripts that end runs.

-- A run that ends so was none: its attempt is given back, and the history does not know it.
local UNCOUNTED = { snooze = true, sleep = true, wait = true, release = true }
local LATER = { retry = true, snooze = true, sleep = true, wait = true } -- the job has a new run_at

-- Add the run that ends to the history: a line of JSON each.
local function remember(job, error)
  local line = '{"number":' .. job[RUNS] .. ',"began_at":' .. as_text(job[STARTED_AT]) .. ',"ended_at":' .. as_text(now)
    .. ',"worker":' .. cjson.encode(job[WORKER]) .. ',"error":' .. (error == '' and 'null' or error) .. '}'
  local history = text(job, HISTORY)
  if history ~= '' then
    local _, breaks = string.gsub(history, '\n', '')
    line = history .. '\n' .. line
    if breaks + 2 > KEPT_HISTORY then line = string.match(line, '\n(.*)') end
  end
  stow(job, HISTORY, line)
end

-- What every end of a run has in common; a request to cancel wins over what it came to.
local function end_run(job, move, error, progress, result, run_at)
  local is_asked = job[IS_CANCELLING] == 1
  local final = is_asked and 'cancel' or move
  if UNCOUNTED[move] then
    job[ATTEMPTS] = job[ATTEMPTS] - 1
    job[RUNS] = job[RUNS] - 1
  else
    local tells = move == 'fail' or move == 'retry' or move == 'rescue' or (move == 'cancel' and not is_asked)
    error = tells and error or ''
    stow(job, ERROR, error)
    remember(job, error)
  end
  if progress ~= '' then job[PROGRESS] = progress end
  if final == 'succeed' then stow(job, RESULT, result) end
  if LATER[final] then job[RUN_AT] = run_at end
  shift(job, final)
end

-- Put a job that was claimed ahead back into its lane.
local function give_back(job)
  void_lease(job)
  add(change(lane_of(job), 'ready'), job[RUN_AT], job[SEQ])
  if may_expire(job) then add(EXPIRING, job[EXPIRES_AT], job[SEQ]) end
  touch(job)
  has_changes, has_work = true, true
end
