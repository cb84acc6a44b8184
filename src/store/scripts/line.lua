-- Put behind prelude.lua: the line of those who wait. It decides who may come in first, never whether somebody may.
--
-- A waiter's entry is 'mode polls ends called since record': mode x (alone) or s (shared, seats too); polls 1: hears no call, so it looks
-- often; ends: given up by then unless it looks again; called: when it was called and has not looked since, or 0; since: when it first stood in
-- line. A waiter listens at its channel for 'go' (come in), 'second' and 'third' (stand by: look in a while) and 'look' (show that you are there,
-- or see that the lock's end has changed).
local CALL_PATIENCE = 1000 -- how long somebody who was called may take to come
local LINE_IDLE = 35000    -- how long the line outlives the last look at least

local function admits(state, mode)
  return state == 'free' or state == 'shared' and mode == 's'
end

-- The channel's name has the same tail as the helper keys.
local function publish(id, word)
  return redis.pcall('PUBLISH', 'redlock:wake:' .. id .. ':' .. string.match(FENCE, '^redlock:fence:(.*)$'), word)
end

local function entry_of(id)
  local stored = redis.call('HGET', WAITERS, id)
  local mode, polls, ends, called, since, record = string.match(stored or '', '^(%a) (%d) (%d+) (%d+) (%d+) (.*)$')
  if not mode then return nil end
  return {id = id, mode = mode, polls = polls == '1', ends = tonumber(ends), called = tonumber(called), since = tonumber(since), record = record}
end

local function keep_entry(entry)
  local text = string.format('%s %d %.0f %.0f %.0f ', entry.mode, entry.polls and 1 or 0, entry.ends, entry.called, entry.since)
  return redis.pcall('HSET', WAITERS, entry.id, text .. entry.record)
end

local function drop(id)
  redis.call('ZREM', QUEUE, id)
  redis.call('HDEL', WAITERS, id)
end

local function is_over(entry, time)
  return not entry or entry.ends <= time or entry.called > 0 and time - entry.called > CALL_PATIENCE
end

-- The first in line and its ticket, once those that are over are dropped.
local function first_in_line(time)
  if not QUEUE then return nil end
  while true do
    local head = redis.call('ZRANGE', QUEUE, 0, 0, 'WITHSCORES')
    if not head[1] then return nil end
    local entry = entry_of(head[1])
    if not is_over(entry, time) then return entry, tonumber(head[2]) end
    drop(head[1])
  end
end

-- Whether the waiter hears the word. Who does not is dropped: it has ended. Without the right to publish nobody can tell.
local function hears(entry, word)
  local listeners = publish(entry.id, word)
  if is_error(listeners) or listeners > 0 or entry.polls then return true end
  drop(entry.id)
  return false
end

-- Has it come, within the time that it has for that, unless it is on its way.
local function call(entry, time, word)
  if entry.called > 0 then return true end
  if not hears(entry, word) then return false end
  entry.called = time
  keep_entry(entry)
  return true
end

-- Calls the first in line if the lock is such that it may come in, and has the next two stand by. Not `except`: it knows.
local function call_next(state, time, except)
  while true do
    local entry = first_in_line(time)
    if not entry or entry.id == except or not admits(state, entry.mode) or entry.called > 0 then return end
    if call(entry, time, 'go') then break end
  end
  local rank = 1
  while rank <= 2 do
    local id = redis.call('ZRANGE', QUEUE, rank, rank)[1]
    if not id or id == except then return end
    local entry = entry_of(id)
    if is_over(entry, time) then
      drop(id)
    elseif hears(entry, rank == 1 and 'second' or 'third') then
      rank = rank + 1
    end
  end
end

-- Whether nobody who waits comes before us; `id` is '' for somebody who is not in line. Who comes before is called.
local function is_our_turn(state, time, id, ticket)
  while true do
    local entry, first_ticket = first_in_line(time)
    if not entry or entry.id == id then return true end
    if id ~= '' and (ticket < first_ticket or ticket == first_ticket and id < entry.id) then return true end
    if call(entry, time, admits(state, entry.mode) and 'go' or 'look') then return false end
  end
end

-- Puts the waiter in its place, or leaves it there for another while. Those right before it that are over are dropped, a few at a time,
-- so that what killed waiters leave does not pile up behind somebody who waits for long. -> whether it was in line already
local function enqueue(id, ticket, mode, polls, life, record, time)
  local before = entry_of(id)
  local failure = first_error(
    redis.pcall('ZADD', QUEUE, ticket, id),
    keep_entry({id = id, mode = mode, polls = polls == '1', ends = time + life, called = 0, since = before and before.since or time, record = record}))
  if failure then
    drop(id)
    return false
  end
  local idle = math.max(LINE_IDLE, life)
  if redis.call('PTTL', QUEUE) < idle then redis.call('PEXPIRE', QUEUE, decimal(idle)) end
  if redis.call('PTTL', WAITERS) < idle then redis.call('PEXPIRE', WAITERS, decimal(idle)) end
  for _ = 1, 8 do
    local rank = redis.call('ZRANK', QUEUE, id)
    if not rank or rank == 0 then break end
    local neighbour = redis.call('ZRANGE', QUEUE, rank - 1, rank - 1)[1]
    if not is_over(entry_of(neighbour), time) then break end
    drop(neighbour)
  end
  return before ~= nil
end
