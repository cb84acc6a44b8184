-- Put behind prelude.lua: the line of those who wait. It decides who may come in first, never whether somebody may.
--
-- A waiter's entry is 'mode polls ends called since record': mode x (alone), s (shared) or n (shared, in a slot); polls 1: hears no call, so it looks
-- often; ends: given up by then unless it looks again; called: when it was called and has not looked since, or 0; since: when it first stood in
-- line. A waiter listens at its channel for 'granted' (come in), 'standby' and 'standby_later' (stand by: look in a while), 'taken' (no need to, the
-- lock is taken) and 'recheck' (show that you are there, or see that the lock's end has changed). Its id begins with a hash of its host and a dot.
-- Of later formats of the entry two things are certain: the third word is `ends`, and whoever waits understands 'recheck' (D3).
local NOTIFY_TIMEOUT = 1000 -- how long somebody who was called may take to come
local QUEUE_IDLE = 35000    -- how long the line outlives the last look at least
local MANY = 64            -- so many in a row are looked through for one that is of another host, or wants more than a slot

local function admits(state, mode)
  return state == 'free' or state == 'shared' and mode ~= WORD.alone
end

-- An entry in another format is a newer version's (`opaque`), and not ours to change. It keeps its place until it ends; where it does not
-- say when, for as long as somebody listens.
local function opaque_entry(id, stored)
  local ends = tonumber(string.match(stored, '^%S+ %S+ (%d+)'))
  return {id = id, mode = WORD.alone, polls = ends ~= nil, ends = ends or math.huge, called = 0, opaque = true}
end

local function entry_of(id)
  local stored = redis.call('HGET', WAITERS, id)
  if not stored then return nil end
  local mode, polls, ends, called, since, record = string.match(stored, '^([xsn]) ([01]) (%d+) (%d+) (%d+) (.*)$')
  if not mode then return opaque_entry(id, stored) end
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
  return not entry or entry.ends <= time or entry.called > 0 and time - entry.called > NOTIFY_TIMEOUT
end

local function host_of(id)
  return string.match(id, '^(%x+)%.') or id
end

-- The host of a waiter that was notified and did not come, once this script has dropped one.
local absent_host

-- The waiter's entry, unless that is over: then it is dropped.
local function living(id, time)
  local entry = entry_of(id)
  if not is_over(entry, time) then return entry end
  if entry and entry.called > 0 then absent_host = host_of(id) end
  drop(id)
end

-- The first in line and its ticket, once those that are over are dropped.
local function first_in_queue(time)
  if not QUEUE then return nil end
  while true do
    local head = redis.call('ZRANGE', QUEUE, 0, 0, 'WITHSCORES')
    if not head[1] then return nil end
    local entry = living(head[1], time)
    if entry then return entry, tonumber(head[2]) end
  end
end

-- Whether the waiter hears the word. Who does not is dropped: it has ended. nil: nobody can tell, we may not publish.
local function hears(entry, word)
  local listeners = publish(entry.id, word)
  if is_error(listeners) then return nil end
  if listeners > 0 or entry.polls then return true end
  drop(entry.id)
  return false
end

-- Whether a holder may not notify anybody: then waiters poll.
local function is_mute()
  return redis.pcall('HGET', OWNER, 'mute') == '1'
end

-- Has it come, within the time that it has for that, unless it is on its way. -> whether it is there. Whoever releases without the right to
-- publish has notified nobody; but where such a one looks, the waiter before it may know of a mute holder, and poll (`polled`).
local function call(entry, time, word, polled)
  if entry.called > 0 then return true end
  local heard = hears(entry, word)
  if heard == false then return false end
  if entry.opaque then return true end
  if heard or polled then
    entry.called = time
    keep_entry(entry)
  end
  return true
end

-- Tells `word` to the first waiter from `rank` on, and `others` to the first of them that is not of the host, and to the last: if whoever is
-- notified does not come, one of these sees it. Not `except`: it knows.
local function tell_standbys(rank, host, word, others, time, except)
  local function second()
    return redis.call('ZRANGE', QUEUE, rank, rank)[1]
  end
  local function of_another_host()
    for _, id in ipairs(redis.call('ZRANGE', QUEUE, rank, rank + MANY)) do
      if host_of(id) ~= host then return id end
    end
  end
  local function last()
    return redis.call('ZRANGE', QUEUE, -1, -1)[1]
  end
  local told = {[except or ''] = true}
  for _, choose in ipairs({second, of_another_host, last}) do
    local id = choose()
    while id and not told[id] do
      local entry = living(id, time)
      if entry and (entry.called > 0 or hears(entry, word) ~= false) then
        told[id] = true
      else
        id = choose()
      end
    end
    word = others
  end
end

-- Calls the first in line; if it may come in, others stand by. When one of its host was notified and did not come, all that stand right behind
-- it on that host are called with it: a host that is gone costs two such waits, however many wait there. -> whether it is there
local function call_first(entry, state, time, except, polled)
  if entry.called > 0 then return true end
  local may_enter = admits(state, entry.mode)
  if not call(entry, time, may_enter and WORD.granted or WORD.recheck, polled) then return false end
  if not may_enter then return true end
  local host, rank = host_of(entry.id), 1
  while host == absent_host do
    local id = redis.call('ZRANGE', QUEUE, rank, rank)[1]
    if not id or id == except or host_of(id) ~= host then break end
    local neighbour = living(id, time)
    if neighbour and call(neighbour, time, WORD.granted, polled) then rank = rank + 1 end
  end
  tell_standbys(1, host, WORD.standby, WORD.standby_later, time, except)
  return true
end

-- Calls the first in line if the lock is such that it may come in. Not `except`: it comes by itself.
local function call_next(state, time, except)
  while true do
    local entry = first_in_queue(time)
    if not entry or not admits(state, entry.mode) then return end
    if entry.id == except then return tell_standbys(1, host_of(except), WORD.standby, WORD.standby_later, time, except) end
    if call_first(entry, state, time, except) then return end
  end
end

-- Has the first in line look in a while, unless it may come in: it may not know when the lock ends.
local function tell_first_of_end(state, time)
  local entry = first_in_queue(time)
  if entry and not admits(state, entry.mode) then hears(entry, WORD.standby) end
end

-- Whether those before us wait for slots only, or there are too many of them to tell: who comes behind all these is not delayed, for they
-- share the lock with us when it is their turn. Who wants another thing shows that it is there.
local function only_takers_before(time, comes_before)
  local rank = 0
  while rank < MANY do
    local at = redis.call('ZRANGE', QUEUE, rank, rank, 'WITHSCORES')
    local entry = at[1] and living(at[1], time)
    if not at[1] or entry and not comes_before(entry, tonumber(at[2])) then return true end
    if entry and entry.mode ~= WORD.slotted and call(entry, time, WORD.recheck, is_mute()) then return false end
    if entry and entry.mode == WORD.slotted then rank = rank + 1 end
  end
  return true
end

-- Whether nobody who waits comes before us; `id` is '' for somebody who is not in line. Who comes before is called. `beside`: we share the lock
-- with those who have it and want no slot, so whoever waits for one is not in our way.
local function is_our_turn(state, time, id, ticket, beside)
  local function comes_before(entry, its_ticket)
    return entry.id ~= id and (id == '' or its_ticket < ticket or its_ticket == ticket and entry.id < id)
  end
  while true do
    local entry, first_ticket = first_in_queue(time)
    if not entry or not comes_before(entry, first_ticket) then return true end
    if beside and entry.mode == WORD.slotted then return only_takers_before(time, comes_before) end
    -- Of a free lock nobody can tell any more who held it.
    if call_first(entry, state, time, id, state == 'free' or is_mute()) then return false end
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
  local idle = math.max(QUEUE_IDLE, life)
  if redis.call('PTTL', QUEUE) < idle then redis.call('PEXPIRE', QUEUE, decimal(idle)) end
  if redis.call('PTTL', WAITERS) < idle then redis.call('PEXPIRE', WAITERS, decimal(idle)) end
  for _ = 1, 8 do
    local rank = redis.call('ZRANK', QUEUE, id)
    if not rank or rank == 0 then break end
    local neighbour = redis.call('ZRANGE', QUEUE, rank - 1, rank - 1)[1]
    if living(neighbour, time) then break end
  end
  return before ~= nil
end
