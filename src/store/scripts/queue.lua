-- Follows prelude.lua: the queue. It decides which waiter acquires first, never whether it may.
-- A waiter's entry is 'mode polls ends notified since record':
--   mode      x (alone), s (shared) or n (shared, in a slot)
--   polls     1: the waiter gets no notifications, so it polls often
--   ends      the entry expires then unless the waiter polls again
--   notified  when the waiter was notified, if it has not polled since; otherwise 0
--   since     when the waiter first joined the queue
-- A waiter subscribes to its channel. Notifications: 'granted' (acquire now), 'standby' and
-- 'standby_later' (poll after a while), 'taken' (the lock is taken, no need to poll) and 'recheck'
-- (poll now, to show that you still wait, or to see that the lock's end has changed or that you are
-- superseded).
-- Later formats of the entry keep three rules (D3): the third word is `ends`, every waiter
-- understands 'recheck', and a waiter that leaves removes its entry and notifies the next one.

-- The limit of searches in the queue, as for a waiter of another host.
local MANY = 64
-- The field of KEYS.waiters with the newest waiter so far that supersedes older ones:
-- 'ticket id record'. This waiter may have left the queue. The field stays for TIME.newest_life
-- after its last poll. A waiter that has not polled for nearly as long gives up by itself.
local NEWEST = '+'
-- The field of KEYS.waiters with the last dismissal: 'ticket request'. Waiters with that ticket or
-- an earlier one give up (Q12). It stays as long as NEWEST does.
local DISMISSED = '-'

local function admits(state, mode)
  return state == 'free' or state == 'shared' and mode ~= WORD.alone
end

-- Whether the lock, in this state, has room for the waiter. A waiter for slots needs all that it
-- takes at the same time, of its own pool, without those in the set `left`. While it is first,
-- others wait for it; otherwise it might never get them (M4).
local function has_room(state, entry, time, left)
  if not admits(state, entry.mode) then return false end
  if not left and state == 'free' or entry.mode ~= WORD.slotted then return true end
  return (find_slots(pool_in(entry.record), take_of(entry.record), {}, time, left)) ~= nil
end

-- The slots that a waiter wants, if it wants only certain ones. It keeps others from these slots,
-- and from no other (Q13).
local function wanted_by(entry)
  return entry.mode == WORD.slotted and not entry.opaque and pool_in(entry.record).slots
end

local function add_all(set, slots)
  for _, slot in ipairs(slots) do set[slot] = true end
end

-- A function that tells whether any slot of a list is in the set. It remembers the answer, as many
-- waiters have the same list.
local function meets(set)
  local known = {}
  return function(slots)
    for i = 1, known[slots] == nil and #slots or 0 do
      known[slots] = known[slots] or set[slots[i]] ~= nil
    end
    return known[slots]
  end
end

-- The order by time, with ticket and id; or that of the queue, with score and id.
local function is_before(ticket, id, other_ticket, other_id)
  return ticket < other_ticket or ticket == other_ticket and id < other_id
end

-- The class of a waiter or client with this owner record: higher ones come first.
local function class_in(record)
  return math.min(number_in(record, WORD.priority_field) or 0, NUMBER.max_priority)
end

-- The position in the queue, as the score in KEYS.queue: first the class counts, then the ticket
-- (Q14).
local function score_of(class, ticket)
  return math.min(ticket, NUMBER.class_span - 1) - class * NUMBER.class_span
end
-- The score behind all waiters of the class.
local function end_of_class(class)
  return score_of(class, NUMBER.class_span)
end
local function ticket_in(score)
  return score % NUMBER.class_span
end

-- The largest ticket in the queue of those in this class, or nil.
local function largest_ticket(class)
  local last = redis.call('ZRANGE', KEYS.queue, -1, -1, 'WITHSCORES')
  local score = tonumber(last[2])
  if score and score > end_of_class(class) then
    local after = '(' .. decimal(end_of_class(class))
    local lower = redis.call('ZRANGEBYSCORE', KEYS.queue, after, '+inf', 'LIMIT', 0, 1)[1]
    local rank = redis.call('ZRANK', KEYS.queue, lower)
    if rank == 0 then return nil end
    score = tonumber(redis.call('ZRANGE', KEYS.queue, rank - 1, rank - 1, 'WITHSCORES')[2])
  end
  if score and score >= score_of(class, 0) then return ticket_in(score) end
end

local read_entry
do
  -- An entry in another format is from a newer version (`opaque`), and must not be changed. It
  -- keeps its position until it ends; if it has no end, for as long as its waiter is subscribed.
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

  function read_entry(id)
    local stored = redis.call('HGET', KEYS.waiters, id)
    if not stored then return nil end
    local mode, polls, ends, notified, since, record_at = string.match(
      stored, '^(%a) ([01]) (%d+) (%d+) (%d+) ()')
    if not mode or not is_mode(mode) then return opaque_entry(id, stored) end
    return {
      id = id, mode = mode, polls = polls == '1', ends = tonumber(ends),
      notified = tonumber(notified), since = tonumber(since),
      record = string.sub(stored, record_at)
    }
  end
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

-- Whether the entry has expired, or its waiter was notified and did not poll in time. If it was
-- notified in the future, the clock was set back, and it is unknown how long ago that was.
local function has_ended(entry, time)
  return not entry or entry.ends <= time or entry.notified > time
    or entry.notified > 0 and time - entry.notified > TIME.notify_timeout
end

local function host_of(id)
  local host_end = string.find(id, WORD.after_host, 1, true)
  return host_end and string.sub(id, 1, host_end - 1) or id
end

-- The host of a notified waiter that did not poll, if this script has dropped one.
local absent_host

-- The waiter's entry. Drops an entry that has ended, and returns nil.
local function living(id, time)
  local entry = read_entry(id)
  if not has_ended(entry, time) then return entry end
  if entry and entry.notified > 0 then absent_host = host_of(id) end
  drop(id)
end

-- The first waiter and its score, after dropping entries that have ended.
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

-- Whether the waiter polled so lately that it need not prove again that it runs. One that polls
-- often has its own proof: its entry ends soon.
local function has_just_polled(entry, time)
  return not entry.opaque and not entry.polls and is_subscribed(entry.id)
    and entry.ends - TIME.idle_life > time - TIME.notify_timeout
end

-- Publishes the word to the waiter. Drops a waiter that neither subscribes nor polls, as it has
-- died. PUBLISH also counts clients that subscribe to patterns, such as a monitor; PUBSUB does not.
-- If the user may not call PUBSUB, the count of PUBLISH has to suffice. -> whether the waiter is
-- alive; nil: unknown, because we may not publish
local function deliver(entry, word)
  local listeners = publish(entry.id, word)
  if is_error(listeners) then return nil end
  if entry.polls or listeners > 0 and is_subscribed(entry.id) then return true end
  drop(entry.id)
  return false
end

-- Notifies the waiter that it must poll within TIME.notify_timeout, unless it is notified already.
-- If we may not publish, the waiter only counts as notified if it polls by itself, because it knows
-- of a holder that cannot publish (`polled`). -> whether the waiter is alive
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

-- Publishes `word` to the first waiter from `rank` on, and `others` to the first waiter of another
-- host and to the last waiter. If the notified waiter does not poll, one of these will notice.
-- Skips `except`, which is the caller.
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
  local notified = {[except or ''] = true}
  for _, choose in ipairs({nearest, of_another_host, last}) do
    local id = choose()
    while id and not notified[id] do
      local entry = living(id, time)
      if entry and (entry.notified > 0 or deliver(entry, word) ~= false) then
        notified[id] = true
      else
        id = choose()
      end
    end
    word = others
  end
end

-- Notifies the waiter at this rank, the first one that is not kept out by others. If it may
-- acquire, others stand by; if it may not, it only has to show that it runs, as it keeps others
-- out. If another notified waiter of its host did not poll, all waiters of that host right behind
-- it are notified as well. So a dead host costs two timeouts, however many of its waiters wait.
-- -> whether the waiter is alive
local function notify_first(entry, first, may_enter, time, except, polled)
  if not may_enter and has_just_polled(entry, time) then return true end
  local word = may_enter and WORD.granted or WORD.recheck
  if not notify(entry, time, word, polled) then return false end
  local host, rank = host_of(entry.id), first + 1
  while host == absent_host do
    local id = redis.call('ZRANGE', KEYS.queue, rank, rank)[1]
    if not id or id == except or host_of(id) ~= host then break end
    local neighbour = living(id, time)
    if neighbour and notify(neighbour, time, word, polled) then rank = rank + 1 end
  end
  if not may_enter then return true end
  notify_standbys(first + 1, host, WORD.standby, WORD.standby_later, time, except)
  return true
end

-- The first waiter for which the lock has room, and its rank; or nil. Waiters for certain slots
-- that have no room, or are notified already, only keep their slots from waiters for slots behind
-- them. Looks at a bounded number of waiters.
local function first_with_room(state, time)
  local entry, left = first_in_queue(time), nil
  if not entry then return nil end
  local rank, known = 0, {}
  repeat
    local wanted = wanted_by(entry)
    -- None behind another that wants the same slots can have room.
    local may_enter = not known[wanted] and has_room(state, entry, time, left)
    if may_enter and not (wanted and entry.notified > 0) then return entry, rank end
    if not wanted or not admits(state, entry.mode) then return nil end
    left, known[wanted] = left or {}, true
    add_all(left, wanted)
    repeat
      rank = rank + 1
      local id = redis.call('ZRANGE', KEYS.queue, rank, rank)[1]
      if not id or rank == MANY then return nil end
      entry = living(id, time)
      if not entry then rank = rank - 1 end
    until entry
  until entry.mode ~= WORD.slotted
end

-- Notifies the first waiter for which the lock has room. Skips `except`, which is the caller.
local function notify_next(state, time, except)
  while true do
    local entry, rank = first_with_room(state, time)
    if not entry then return end
    if entry.id == except then
      local host = host_of(except)
      return notify_standbys(rank + 1, host, WORD.standby, WORD.standby_later, time, except)
    end
    if entry.notified > 0 or notify_first(entry, rank, true, time, except) then return end
  end
end

-- Whether this waiter watches over the first one while that may not enter and keeps others out: the
-- second does, and the first of another host.
local function is_watcher(id, first)
  local host = host_of(first.id)
  for rank, other in ipairs(redis.call('ZRANGE', KEYS.queue, 1, MANY)) do
    if other == id and rank == 1 then return true end
    if host_of(other) ~= host then return other == id end
  end
  return false
end

-- Puts the first waiter on standby unless it may acquire, as it may not know when the lock ends.
local function notify_first_of_end(state, time)
  while true do
    local entry = first_in_queue(time)
    if not entry or has_room(state, entry, time) then return end
    if deliver(entry, WORD.standby) ~= false then return end
    -- It has died, and may have blocked the waiter behind it.
    notify_next(state, time)
  end
end

-- Whether all waiters before us wait for slots, or are too many to check. Then we delay no waiter:
-- those for slots share the lock with us when it is their turn, and waiters behind them come later
-- anyway. Any other waiter before us is notified, so that it shows whether it is alive.
local function only_takers_before(time, comes_before)
  local rank = 0
  while rank < MANY do
    local at = redis.call('ZRANGE', KEYS.queue, rank, rank, 'WITHSCORES')
    local entry = at[1] and living(at[1], time)
    if not at[1] or entry and not comes_before(entry, tonumber(at[2])) then return true end
    local is_taker = entry and entry.mode == WORD.slotted
    if entry and not is_taker
      and notify(entry, time, WORD.recheck, read_owner().cannot_publish) then
      return false
    end
    if is_taker then rank = rank + 1 end
  end
  return true
end

-- Whether there are slots for us besides those that waiters before us want, who want only certain
-- ones (Q13). Such a waiter is asked to show that it runs if it keeps us from a free slot. Changes
-- `ours`, see is_our_turn().
local function has_slots_besides(ours, time, comes_before, polled)
  local free, left, added, rank = {}, {}, {}, 0
  local is_free = meets(free)
  for position = 0, ours.pool.limit - 1 do
    if string.sub(ours.free, position + 1, position + 1) == '1' then
      free[slot_at(ours.pool, position)] = true
    end
  end
  while rank < MANY do
    local at = redis.call('ZRANGE', KEYS.queue, rank, rank, 'WITHSCORES')
    local entry = at[1] and living(at[1], time)
    if not at[1] or entry and not comes_before(entry, tonumber(at[2])) then break end
    local wanted = entry and wanted_by(entry)
    local is_in_our_way = entry and (not wanted or is_free(wanted))
    local is_alive = entry and (not is_in_our_way or entry.notified > 0
      or has_just_polled(entry, time) or notify(entry, time, WORD.recheck, polled))
    if is_alive and not wanted then
      ours.blocker = entry
      return false
    end
    if is_alive then
      if is_in_our_way then ours.blocker = ours.blocker or entry end
      if not added[wanted] then add_all(left, wanted) end
      added[wanted] = true
      rank = rank + 1
    end
  end
  ours.slots, ours.free = find_slots(ours.pool, ours.take, ours.wanted, time, left)
  return ours.slots ~= nil
end

-- Whether no waiter comes before us. `id` is '' for a client that is not in the queue: then our
-- score is the end of our class. A waiter that comes before us is notified. `beside`: we would
-- share the lock with its holders and need no slot, so waiters for slots do not block us. `ours`:
-- the {pool, take, wanted, slots, free} of a client for slots, otherwise nil. Slots that waiters
-- before us want are taken out of `slots` and `free`; `blocker` becomes a waiter that keeps us out.
local function is_our_turn(state, time, id, score, beside, ours)
  local function comes_before(entry, its_score)
    return entry.id ~= id and is_before(its_score, entry.id, score, id)
  end
  while true do
    local entry, first_score = first_in_queue(time)
    if not entry or not comes_before(entry, first_score) then return true end
    if beside and entry.mode == WORD.slotted then return only_takers_before(time, comes_before) end
    -- A free lock does not show its former holder, which may have been one that cannot publish.
    local polled = state == 'free' or read_owner().cannot_publish
    if ours and wanted_by(entry) then
      return has_slots_besides(ours, time, comes_before, polled)
    end
    if entry.notified > 0
      or notify_first(entry, 0, has_room(state, entry, time), time, id, polled) then
      return false
    end
  end
end

-- Queues the waiter, or renews its entry. Drops a few ended entries right before it, so that those
-- of killed waiters do not accumulate before a long-waiting one. -> whether it was in the queue
-- already
local function enqueue(id, ticket, mode, polls, life, record, time)
  local before = read_entry(id)
  local failure = first_error(
    redis.pcall('ZADD', KEYS.queue, decimal(score_of(class_in(record), ticket)), id),
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

-- The number of waiters in the queue besides this one.
local function number_of_others(id)
  local is_queued = redis.call('ZSCORE', KEYS.queue, id)
  return redis.call('ZCARD', KEYS.queue) - (is_queued and 1 or 0)
end

-- Of the waiters before this rank, the number of those that keep a client for this pool out. Looks
-- at a bounded number; all others count.
local function number_in_the_way(rank, pool)
  local number, is_ours = math.max(0, rank - MANY), meets(positions_in(pool))
  local first = math.min(rank, MANY)
  for _, id in ipairs(first > 0 and redis.call('ZRANGE', KEYS.queue, 0, first - 1) or {}) do
    local entry = read_entry(id)
    local wanted = entry and wanted_by(entry)
    if entry and (not wanted or is_ours(wanted)) then number = number + 1 end
  end
  return number
end

-- The number of other waiters with smaller tickets, in any class: those that came before us.
local function number_of_earlier(id, ticket)
  local entries, number = redis.call('ZRANGE', KEYS.queue, 0, -1, 'WITHSCORES'), 0
  for i = 1, #entries, 2 do
    local its_ticket = ticket_in(tonumber(entries[i + 1]))
    if is_before(its_ticket, entries[i], ticket, id) then number = number + 1 end
  end
  return number
end

-- Drops dead waiters while `limit` or more others are queued: killed waiters must not fill the
-- queue (Q10). Ends when `limit` others are known to live.
local function drop_absent(limit, id, time)
  local rank, alive = 0, 0
  while alive < limit and number_of_others(id) >= limit do
    local other = redis.call('ZRANGE', KEYS.queue, rank, rank)[1]
    if not other then return end
    local entry = living(other, time)
    if entry and (other == id or entry.polls or is_subscribed(other)) then
      rank = rank + 1
      if other ~= id then alive = alive + 1 end
    else
      drop(other)
    end
  end
end
