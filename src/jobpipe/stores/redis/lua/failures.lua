-- told: how many of those that failed last to pass over, how many to tell.
-- Answers, packed, for each: type, the beginning of its error with the type of that, when it failed, id.
come_due()
local first, limit = unpack(told)
local seqs = redis.call('ZREVRANGE', FAILED, first, first + limit - 1)
load(seqs)
local names, places, heads = {}, {}, {}
for _, seq in ipairs(seqs) do
  local job = jobs[seq]
  if job and job[ERROR] == true then
    names[#names + 1], places[#places + 1] = seq .. ':' .. ERROR, seq
  elseif job then
    heads[seq] = job[ERROR]
  end
end
for n, error in ipairs(fetch(P .. 'texts', names)) do heads[places[n]] = error or '' end

local found = {}
for _, seq in ipairs(seqs) do
  local job = jobs[seq]
  -- Why so little: the rest of an error is long. The second is for a type with quotes in it.
  local head = job and (heads[seq]:match('^{"type":"[^"\\]*"') or heads[seq]:match('^{"type":".-[^\\]"'))
  found[#found + 1] = { job and job[TYPE] or false, head or false, job and job[FINISHED_AT] or 0, job and job[ID] or seq }
end
return cmsgpack.pack(found)
