-- For the scripts that write what runs have logged: a list of packed chunks for each job, the oldest first.
-- They do so after flush(), which lets them write on a server without memory to spare.

-- A chunk: the attempt, the token of the run's lease, the number of its lines before, the lines cut before it, its lines
-- as a number, in bytes, and as JSON; and the bytes that the attempt, and the job, have with it.
local ATTEMPT, RUN, START, CUT, COUNT, SIZE, LINES, OF_ATTEMPT, OF_JOB = 1, 2, 3, 4, 5, 6, 7, 8, 9

local function log_key(seq)
  return P .. 'log:' .. seq
end

-- Note how many bytes there are with the chunk that comes after the other; are these too many?
local function sum_up(chunk, last)
  chunk[OF_JOB] = (last and last[OF_JOB] or 0) + chunk[SIZE]
  chunk[OF_ATTEMPT] = (last and last[ATTEMPT] == chunk[ATTEMPT] and last[OF_ATTEMPT] or 0) + chunk[SIZE]
  return chunk[OF_ATTEMPT] > MOST_OF_ATTEMPT or chunk[OF_JOB] > MOST_OF_JOB
end

-- Drop the oldest chunks, as model/logs.py does, never the newest; the next one counts their lines as cut.
local function cut_log(key)
  local chunks = redis.call('LRANGE', key, 0, -1)
  local of_attempt, of_job, is_dropped = {}, 0, {}
  for n = #chunks, 1, -1 do
    local chunk = cmsgpack.unpack(chunks[n])
    chunks[n] = chunk
    local size = (of_attempt[chunk[ATTEMPT]] or 0) + chunk[SIZE]
    of_attempt[chunk[ATTEMPT]] = size
    if size <= MOST_OF_ATTEMPT then of_job = of_job + chunk[SIZE] end
    is_dropped[n] = n < #chunks and (size > MOST_OF_ATTEMPT or of_job > MOST_OF_JOB)
  end
  local kept, last, cut = {}, nil, 0
  for n, chunk in ipairs(chunks) do
    if is_dropped[n] then
      cut = cut + chunk[CUT] + chunk[COUNT]
    else
      chunk[CUT], cut = chunk[CUT] + cut, 0
      sum_up(chunk, last)
      kept[#kept + 1] = cmsgpack.pack(chunk)
      last = chunk
    end
  end
  redis.call('DEL', key)
  many('RPUSH', key, kept)
end

-- Add what the run of that token logged; what it has told before is there already.
local function write_log(seq, attempt, token, chunks)
  local key = log_key(seq)
  local packed = redis.call('LINDEX', key, -1)
  local last = packed and cmsgpack.unpack(packed)
  for _, told in ipairs(chunks) do
    local start, cut, count, size, lines = unpack(told)
    if not (last and last[RUN] == token and last[START] >= start) then
      local chunk = { attempt, token, start, cut, count, size, lines }
      local is_long = sum_up(chunk, last)
      redis.call('RPUSH', key, cmsgpack.pack(chunk))
      if is_long then
        cut_log(key)
        chunk = cmsgpack.unpack(redis.call('LINDEX', key, -1))
      end
      last = chunk
    end
  end
end
