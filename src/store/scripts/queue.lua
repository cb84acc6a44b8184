-- Follows prelude.lua: the queue. It decides which waiter may acquire first, never whether one may.
-- A waiter's entry is 'mode polls ends notified since record':
--   mode      x (alone), s (shared) or n (shared, in a slot)
--   polls     1: the waiter gets no notifications, so it polls often
--   ends      the entry expires then unless the waiter polls again
--   notified  when the waiter was notified, if it has not polled since; otherwise 0
--   since     when the waiter first joined the queue
-- A waiter subscribes to its channel. Notifications: 'granted' (acquire now), 'standby' and
-- 'standby_later' (poll after a while), 'taken' (no need to poll, the lock is taken) and 'recheck'
-- (poll: show that you are there, or see that the lock's end has changed, or that you are
-- superseded).
-- Two things hold for later formats of the entry: the third word is `ends`, and every waiter
-- understands 'recheck' (D3).

-- Limit of a search for a waiter of another host, or one that wants more than a slot.
local MANY = 64
-- The field of WAITERS with the newest waiter so far that supersedes older ones:
-- 'ticket id record'. It may have left the queue since. It stays for TIME.newest_life after that
-- one's last poll, and a waiter that stood still for nearly as long gives up by itself.
local NEWEST = '+'

local function admits(state, mode)
  return state == 'free' or state == 'shared' and mode ~= WORD.alone
end

-- Whether the lock, in this state, has room for the waiter. One that takes several slots waits until
-- as many are free at the same time, and comes first meanwhile: else it would never get them (M4).
local function has_room(state, entry, time)
  if not admits(state, entry.mode) then return false end
  if state == 'free' or entry.mode ~= WORD.slotted or take_of(entry.record) == 1 then return true end
  local limit = math.min(number_in(entry.record, WORD.slots_field) or 0, NUMBER.max_slots)
  return (find_slots(limit, take_of(entry.record), {}, time)) ~= nil
end

-- The order of waiters, by ticket and id.
local function is_before(ticket, id, other_ticket, other_id)
  return ticket < other_ticket or ticket == other_ticket and id < other_id
end

-- An entry in another format is a newer version's (`opaque`), and not ours to change. It keeps its
-- position until it ends. If it does not say when, it keeps it while its waiter is subscribed.
local function opaque_entry(id, stored)
  local ends = tonumber(string.match(stored, '^%S+ %S+ (%d+)'))
  return {
    id = id, mode = WORD.alone, polls = ends ~= nil, ends = ends or math.huge, notified = 0,
    opaque = true
  }
end

local function is_mode(letter)
  return letter == WORD.alone or letter == WORD.shared or letter == WORD.slotted
end

local function read_entry(id)
  local stored = redis.call('HGET', KEYS.waiters, id)
  if not stored then return nil end
  local mode, polls, ends, notified, since, record = string.match(
    stored, '^(%a) ([01]) (%d+) (%d+) (%d+) (.*)$')
  if not mode or not is_mode(mode) then return opaque_entry(id, stored) end
  return {
    id = id, mode = mode, polls = polls == '1', ends = tonumber(ends),
    notified = tonumber(notified), since = tonumber(since), record = record
  }
end

local function write_entry(entry)
  local text = string.format('%s %d %.0f %.0f %.0f ', entry.mode, entry.polls and 1 or 0,
    entry.ends, entry.notified, entry.since)
  return redis.pcall('HSET', KEYS.waiters, entry.id, text .. entry.record)
end

local function drop(id)
  redis.call('ZREM', KEYS.queue, id)
  redis.call('HDEL', KEYS.waiters, id)
end

-- No waiter was notified in the future: the clock was set back, and how long ago it was is unknown.
local function is_over(entry, time)
  return not entry or entry.ends <= time or entry.notified > time
    or entry.notified > 0 and time - entry.notified > TIME.notify_timeout
end

local function host_of(id)
  local host_end = string.find(id, WORD.after_host, 1, true)
  return host_end and string.sub(id, 1, host_end - 1) or id
end

-- The host of a waiter that was notified and did not poll, once this script has dropped one.
local absent_host

-- The waiter's entry. An entry that has ended is dropped.
local function living(id, time)
  local entry = read_entry(id)
  if not is_over(entry, time) then return entry end
  if entry and entry.notified > 0 then absent_host = host_of(id) end
  drop(id)
end

-- The first waiter and its ticket, after dropping entries that have ended.
local function first_in_queue(time)
  if not KEYS.queue then return nil end
  while true do
    local head = redis.call('ZRANGE', KEYS.queue, 0, 0, 'WITHSCORES')
    if not head[1] then return nil end
    local entry = living(head[1], time)
    if entry then return entry, tonumber(head[2]) end
  end
end

local function is_subscribed(id)
  local counted = redis.pcall('PUBSUB', 'NUMSUB', channel_of(id))
  return is_error(counted) or counted[2] > 0
end

-- Publishes the word to the waiter. Drops a waiter that neither subscribes nor polls: it has ended.
-- PUBLISH also counts who subscribes to patterns, such as a monitor; only PUBSUB tells them apart.
-- Without the right to it, PUBLISH has to do. -> whether it is there; nil: unknown, because we may
-- not publish
local function deliver(entry, word)
  local listeners = publish(entry.id, word)
  if is_error(listeners) then return nil end
  if entry.polls or listeners > 0 and is_subscribed(entry.id) then return true end
  drop(entry.id)
  return false
end

-- Notifies the waiter to poll within TIME.notify_timeout, unless it is notified already. -> whether
-- the waiter is there. A client without the right to publish notifies no waiter when it releases.
-- But where such a client polls, the waiter before it may know of a mute holder, and poll by itself
-- (`polled`).
local function notify(entry, time, word, polled)
  if entry.notified > 0 then return true end
  local delivered = deliver(entry, word)
  if delivered == false then return false end
  if entry.opaque then return true end
  if delivered or polled then
    entry.notified = time
    write_entry(entry)
  end
  return true
end

-- Publishes `word` to the first waiter from `rank` on, and `others` to the first one of another
-- host and to the last one. If the notified waiter does not poll, one of these notices. Leaves out
-- `except`, which knows already.
local function notify_standbys(rank, host, word, others, time, except)
  local function nearest()
    return redis.call('ZRANGE', KEYS.queue, rank, rank)[1]
  end
  local function of_another_host()
    for _, id in ipairs(redis.call('ZRANGE', KEYS.queue, rank, rank + MANY)) do
      if host_of(id) ~= host then return id end
    end
  end
  local function last()
    return redis.call('ZRANGE', KEYS.queue, -1, -1)[1]
  end
  local told = {[except or ''] = true}
  for _, choose in ipairs({nearest, of_another_host, last}) do
    local id = choose()
    while id and not told[id] do
      local entry = living(id, time)
      if entry and (entry.notified > 0 or deliver(entry, word) ~= false) then
        told[id] = true
      else
        id = choose()
      end
    end
    word = others
  end
end

-- Notifies the first waiter; if it may acquire, others stand by. When a notified waiter of its host
-- did not poll, all waiters of that host right behind it are notified as well. So a host that is
-- gone costs two timeouts, however many of its waiters are queued. -> whether the first waiter is
-- there
local function notify_first(entry, state, time, except, polled)
  if entry.notified > 0 then return true end
  local may_enter = has_room(state, entry, time)
  local word = may_enter and WORD.granted or WORD.recheck
  if not notify(entry, time, word, polled) then return false end
  if not may_enter then return true end
  local host, rank = host_of(entry.id), 1
  while host == absent_host do
    local id = redis.call('ZRANGE', KEYS.queue, rank, rank)[1]
    if not id or id == except or host_of(id) ~= host then break end
    local neighbour = living(id, time)
    if neighbour and notify(neighbour, time, WORD.granted, polled) then rank = rank + 1 end
  end
  notify_standbys(1, host, WORD.standby, WORD.standby_later, time, except)
  return true
end

-- Notifies the first waiter if the state of the lock admits it. Leaves out `except`, which polls by
-- itself.
local function notify_next(state, time, except)
  while true do
    local entry = first_in_queue(time)
    if not entry or not has_room(state, entry, time) then return end
    if entry.id == except then
      local host = host_of(except)
      return notify_standbys(1, host, WORD.standby, WORD.standby_later, time, except)
    end
    if notify_first(entry, state, time, except) then return end
  end
end

-- Publishes the word to the first waiter that is there.
local function deliver_to_first(word, time)
  while true do
    local entry = first_in_queue(time)
    if not entry or deliver(entry, word) ~= false then return end
  end
end

-- Puts the first waiter on standby unless it may acquire: it may not know when the lock ends.
local function notify_first_of_end(state, time)
  while true do
    local entry = first_in_queue(time)
    if not entry or has_room(state, entry, time) then return end
    if deliver(entry, WORD.standby) ~= false then return end
    -- It is not there, and may have kept out the one behind it.
    notify_next(state, time)
  end
end

-- Whether all waiters before us want slots only, or are too many to check. A waiter behind all of
-- these is not delayed: they come before it, and share the lock with us when it is their turn. A
-- waiter before us that wants something else is notified to show that it is there.
local function only_takers_before(time, comes_before)
  local rank = 0
  while rank < MANY do
    local at = redis.call('ZRANGE', KEYS.queue, rank, rank, 'WITHSCORES')
    local entry = at[1] and living(at[1], time)
    if not at[1] or entry and not comes_before(entry, tonumber(at[2])) then return true end
    local is_taker = entry and entry.mode == WORD.slotted
    if entry and not is_taker and notify(entry, time, WORD.recheck, read_owner().is_mute) then
      return false
    end
    if is_taker then rank = rank + 1 end
  end
  return true
end

-- Whether no waiter comes before us; `id` is '' for a client that is not in the queue. A waiter
-- that comes before us is notified. `beside`: we share the lock with its holders and want no slot,
-- so a waiter for a slot is not in our way.
local function is_our_turn(state, time, id, ticket, beside)
  local function comes_before(entry, its_ticket)
    return entry.id ~= id and (id == '' or is_before(its_ticket, entry.id, ticket, id))
  end
  while true do
    local entry, first_ticket = first_in_queue(time)
    if not entry or not comes_before(entry, first_ticket) then return true end
    if beside and entry.mode == WORD.slotted then return only_takers_before(time, comes_before) end
    -- A free lock does not show any more which lease held it, so its holder may have been mute.
    local polled = state == 'free' or read_owner().is_mute
    if notify_first(entry, state, time, id, polled) then return false end
  end
end

-- Queues the waiter, or prolongs its entry. Drops a few ended entries right before it, so that the
-- entries of killed waiters do not pile up before one that waits for long. -> whether it was in the
-- queue already
local function enqueue(id, ticket, mode, polls, life, record, time)
  local before = read_entry(id)
  local failure = first_error(
    redis.pcall('ZADD', KEYS.queue, ticket, id),
    write_entry({
      id = id, mode = mode, polls = polls == '1', ends = time + life, notified = 0,
      since = before and before.since or time, record = record
    }))
  if failure then
    drop(id)
    return false
  end
  local idle = math.max(TIME.idle_life, life)
  if redis.call('PTTL', KEYS.queue) < idle then redis.call('PEXPIRE', KEYS.queue, decimal(idle)) end
  if redis.call('PTTL', KEYS.waiters) < idle then
    redis.call('PEXPIRE', KEYS.waiters, decimal(idle))
  end
  for _ = 1, 8 do
    -- It has a rank, as ZADD above has just put it there.
    local rank = redis.call('ZRANK', KEYS.queue, id)
    if rank == 0 then break end
    local neighbour = redis.call('ZRANGE', KEYS.queue, rank - 1, rank - 1)[1]
    if living(neighbour, time) then break end
  end
  return before ~= nil
end

-- How many others than this waiter are queued.
local function number_of_others(id)
  local is_queued = redis.call('ZSCORE', KEYS.queue, id)
  return redis.call('ZCARD', KEYS.queue) - (is_queued and 1 or 0)
end

-- Drops others that are not there any more, for as long as `limit` or more are queued: those that
-- were killed must not fill the queue (Q10).
local function drop_absent(limit, id, time)
  local rank = 0
  while rank < MANY and number_of_others(id) >= limit do
    local other = redis.call('ZRANGE', KEYS.queue, rank, rank)[1]
    if not other then return end
    local entry = living(other, time)
    if entry and (other == id or entry.polls or is_subscribed(other)) then
      rank = rank + 1
    else
      drop(other)
    end
  end
end

-- -> ticket, id and record of the newest waiter so far that supersedes older ones; nil: none; or,
-- where what is stored is in another format, which is a newer version's, nil, nil, nil and an error
local function newest_superseder()
  local stored = redis.call('HGET', KEYS.waiters, NEWEST)
  if not stored then return nil end
  local ticket, id, record = string.match(stored, '^(%d+) (%S+) (.*)$')
  if not ticket then
    return nil, nil, nil, redis.error_reply(
      'ERR the newest run that supersedes others is of a newer version: upgrade redlock-cli')
  end
  return tonumber(ticket), id, record
end

-- Lets the waiter supersede the newest so far that does so, too: that one leaves the queue, and is
-- notified to see it. Unless that one is the newer of the two by ticket and id: then this one
-- leaves. So each server remembers the newest, and the newest of all is superseded nowhere.
-- -> id and record of the one that supersedes this one; nil: none; or nil, nil and an error
local function supersede(id, ticket, record, state, time)
  local function leave(loser)
    local rank = redis.call('ZRANK', KEYS.queue, loser)
    drop(loser)
    if rank == 0 then notify_first_of_end(state, time) end
  end
  local its_ticket, other, its_record, unreadable = newest_superseder()
  -- It may be newer than this one, and must not be forgotten.
  if unreadable then return nil, nil, unreadable end
  if other and is_before(ticket, id, its_ticket, other) then
    leave(id)
    return other, its_record
  end
  if other ~= id then
    -- The entries outlive a queue that has ended by as long as the newest is remembered.
    if redis.call('ZCARD', KEYS.queue) == 0 then redis.call('DEL', KEYS.waiters) end
    local set =
      redis.pcall('HSET', KEYS.waiters, NEWEST, decimal(ticket) .. ' ' .. id .. ' ' .. record)
    if is_error(set) then return nil, nil, set end
  end
  redis.call('PEXPIRE', KEYS.waiters, TIME.newest_life)
  if other and other ~= id then
    publish(other, WORD.recheck)
    leave(other)
  end
end

-- The holder's record with a stop request in this field; nil: it has one there, or is no record of
-- ours.
local function with_request(record, field, request)
  if not string.match(record or '', '^{.+}$') or has_field(record, field) then return end
  return string.sub(record, 1, -2) .. ',"' .. field .. '":' .. request .. '}'
end

-- Asks the holder of an exclusive lease to make room for this waiter, the newest, where that holder
-- was started to do so and has an older place (Q11). `value`: the lock's. The first request stays:
-- it is of a run that is newer than the holder, and so is obeyed.
-- -> an error or nil
local function ask_older(value, id, ticket, request)
  local owner = read_owner()
  local its_ticket, its_id = string.match(owner.record or '',
    '"' .. WORD.place_field .. '":{"ticket":(%d+),"waiter":"([^"]+)"}')
  local is_older = its_ticket and is_before(tonumber(its_ticket), its_id, ticket, id)
  if not is_older or type(value) ~= 'string' or owner.lease ~= redis.sha1hex(value) then return end
  local asked = with_request(owner.record, WORD.replaced_field, request)
  return asked and first_error(redis.pcall('HSET', KEYS.owner, 'record', asked))
end
