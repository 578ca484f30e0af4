-- For the claim: the queued jobs of several lanes in one order.

local MOST_READ = 100 -- records of a lane at a time

-- Has the cursor a job, and which? It reads on where it has to, more each time.
local function has_head(cursor)
  if cursor.place > #cursor.found then
    if cursor.is_last then return false end
    local till = cursor.offset + cursor.size - 1
    cursor.found = redis.call('ZRANGE', cursor.key, cursor.offset, till, 'WITHSCORES')
    cursor.place, cursor.offset, cursor.is_last = 1, till + 1, #cursor.found < 2 * cursor.size
    cursor.size = math.min(2 * cursor.size, MOST_READ)
    if #cursor.found == 0 then return false end
    local seqs = {}
    for place = 1, #cursor.found, 2 do seqs[#seqs + 1] = cursor.found[place] end
    load(seqs)
  end
  cursor.seq, cursor.run_at = cursor.found[cursor.place], tonumber(cursor.found[cursor.place + 1])
  return true
end

local function new_cursor(key, type)
  return { key = key, type = type, found = {}, place = 1, offset = 0, size = 1, is_last = false }
end

local function is_before(one, other)
  if one.run_at ~= other.run_at then return one.run_at < other.run_at end
  return one.seq < other.seq
end

-- Let the cursor at that place sink until all below it come later.
local function sink(heap, place)
  while true do
    local first, left = place, 2 * place
    if heap[left] and is_before(heap[left], heap[first]) then first = left end
    if heap[left + 1] and is_before(heap[left + 1], heap[first]) then first = left + 1 end
    if first == place then return end
    heap[place], heap[first] = heap[first], heap[place]
    place = first
  end
end

-- Cursors by whose job comes first, of which so many will be wanted.
local function new_heap(cursors, most)
  local heap = {}
  for _, cursor in ipairs(cursors) do
    cursor.size = math.min(math.ceil(most / #cursors), MOST_READ)
    if has_head(cursor) then heap[#heap + 1] = cursor end
  end
  for place = math.floor(#heap / 2), 1, -1 do sink(heap, place) end
  return heap
end

-- Go on to the next job of the first cursor, or leave it out.
local function advance(heap, is_out)
  local cursor = heap[1]
  cursor.place = cursor.place + 2
  if is_out or not has_head(cursor) then
    heap[1] = heap[#heap]
    heap[#heap] = nil
  end
  if heap[1] then sink(heap, 1) end
end

-- The lanes of a type whose queues are not paused, each as a cursor with its priority.
local function open_lanes(type, paused, cursors)
  for _, lane in ipairs(redis.call('SMEMBERS', P .. 'ready-lanes:' .. type)) do
    local priority, queue = string.match(lane, '^(-?%d+)/(.*)$')
    if not paused[queue] then
      priority = tonumber(priority)
      cursors[priority] = cursors[priority] or {}
      table.insert(cursors[priority], new_cursor(P .. 'ready:' .. type .. '/' .. lane, type))
    end
  end
end
