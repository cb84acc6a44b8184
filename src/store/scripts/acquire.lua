-- Acquires the lock, or a share or slots of it, if it is free for us and no waiter comes before us.
-- Otherwise it adds us to the queue, if we have a waiter id.
-- ARGV: token, ttl, supervised (0 or 1), owner record,
--       mode (x or s), number of slots (0: none), the positions of the requested slots in our pool
--       as '1,4' ('': the first free ones; the record has the slots if we want only certain ones),
--       our waiter id ('': we do not wait), ticket, polls (0 or 1), life of the entry in ms (0: do
--       not queue us, but compare us with other waiters that supersede, and with dismissals),
--       whether we supersede older waiters that supersede, too (0 or 1; without a waiter id we are
--       not granted the lock, but learn the ticket that we need for that),
--       whether to return the last runs (0 or 1),
--       the maximum number of other waiters (0: no limit, or we were within it before),
--       how many slots we take,
--       the stop request, a JSON object, for an older holder that we replace ('': none)
-- -> {'granted', fence, id, positions of the slots as '1,4' or '', queue, the last runs or ''}
--    | {'held', …, queue}
--    | {'queued', queue}: the lock is free for us, but other waiters come first
--    | {'duplicate'}: this very token already holds it | an error
--    queue: {time, largest ticket of our class or '', number of waiters before us (with a maximum
--            number of others: of those that came before us),
--            whether we are in the queue (0 or NUMBER.queued_…),
--            ms until something may change without a notification or -1, free slots,
--            whether the lock is free for the first waiter, which has been notified
--            (0 or NUMBER.offered…), or whether we watch over it (NUMBER.watches),
--            whether a holder cannot publish,
--            id and owner record of the waiter that supersedes us or '' '',
--            number of other waiters or -1 (not requested),
--            owner record of the first waiter if not all of the slots that it takes are free,
--            although there are enough for us; otherwise '',
--            the request that dismisses us, a JSON object, or ''}
local token, ttl, mode = ARGV.token, tonumber(ARGV.ttl), ARGV.mode
local limit, waiter, ticket = tonumber(ARGV.slots), ARGV.waiter, tonumber(ARGV.ticket)
local id, time, class = redis.sha1hex(token), now(), class_in(ARGV.record)
local is_partial = forget_absent()

-- It also lets a server that is out of memory queue us. Otherwise it would drop the waiter at every
-- poll, queue it again at every undo, and notify the waiters behind it each time.
local refused = refusal_of_writes()
if refused then return refused end
local state, value, type_name = lock_state(time)
if not state then return value end
if value == token or value == SHARED and share_end(id, time) then return {WORD.duplicate} end

local slots, free, first_end = {}, '', nil
local ours
if limit > 0 then
  local only = pool_in(ARGV.record).slots
  ours = {
    pool = {limit = only and #only or limit, slots = only}, take = tonumber(ARGV.take),
    wanted = slots_in(ARGV.wanted)
  }
  slots, free, first_end = find_slots(ours.pool, ours.take, ours.wanted, time)
  if is_error(free) then return free end
  ours.slots, ours.free = slots, free
end
local certain = ours and ours.pool.slots

-- While the slot moves, the server can neither grant nor queue, but a waiter learns of the holder.
if is_partial then
  if admits(state, mode) and slots then return elsewhere() end
  local queue = queue_reply(time)
  queue[REPLY.queue.may_change] = remaining_ms(time)
  queue[REPLY.queue.free_slots] = free
  local refusal = describe(WORD.held, value, type_name, time)
  refusal[REPLY.holder.extra] = queue
  return refusal
end

local supersedes = ARGV.supersedes == '1'
local dismissed_up_to, dismissal = 0, nil
if waiter ~= '' then
  dismissed_up_to, dismissal = last_dismissal()
  if ticket > dismissed_up_to then dismissal = nil end
  if dismissal then send_away(waiter, state, time) end
end
local superseder, superseder_record, failure
if supersedes and waiter ~= '' and not dismissal then
  superseder, superseder_record, failure = supersede(waiter, ticket, ARGV.record, state, time)
  if not failure and not superseder and ARGV.replacement ~= '' and state == 'held' then
    failure = ask_older(value, waiter, ticket, ARGV.replacement)
  end
  if failure then return failure end
end
if ARGV.life == '0' then waiter = '' end
local max_waiting = waiter ~= '' and tonumber(ARGV.max_waiting) or 0
if max_waiting > 0 then drop_absent(max_waiting, waiter, time) end

local was_queued, collector = false, nil
local function queue_status(may_change, offered)
  -- A new ticket must be larger than that of the newest waiter so far, even if that one has left,
  -- and than those that are dismissed.
  local largest = math.max(largest_ticket(class) or 0, dismissed_up_to,
    supersedes and newest_superseder() or 0)
  local rank = waiter ~= '' and redis.call('ZRANK', KEYS.queue, waiter)
  local queue = queue_reply(time, read_owner().cannot_publish)
  queue[REPLY.queue.max_ticket] = largest > 0 and decimal(largest) or ''
  queue[REPLY.queue.ahead] = rank or redis.call('ZCARD', KEYS.queue)
  if certain then
    queue[REPLY.queue.ahead] = number_in_the_way(queue[REPLY.queue.ahead], ours.pool)
  end
  if rank then
    if max_waiting > 0 then queue[REPLY.queue.ahead] = number_of_earlier(waiter, ticket) end
    queue[REPLY.queue.queued] = was_queued and NUMBER.queued_before or NUMBER.queued_now
  end
  queue[REPLY.queue.may_change] = may_change
  queue[REPLY.queue.free_slots] = free
  queue[REPLY.queue.offered] = offered or 0
  queue[REPLY.queue.superseder] = superseder or ''
  queue[REPLY.queue.superseder_record] = superseder_record or ''
  queue[REPLY.queue.collector] = collector or ''
  queue[REPLY.queue.dismissal] = dismissal or ''
  if max_waiting > 0 then queue[REPLY.queue.others] = number_of_others(waiter) end
  return queue
end

local may_enter = admits(state, mode) and slots
local must_leave = superseder or dismissal
local score = waiter ~= '' and score_of(class, ticket) or end_of_class(class)
local is_turn = not must_leave and may_enter
  -- One that supersedes others needs a ticket first.
  and not (supersedes and ARGV.waiter == '')
  and is_our_turn(state, time, waiter, score, state == 'shared' and limit == 0, ours)
if ours then slots, free = ours.slots, ours.free end
if not is_turn then
  if must_leave and may_enter then notify_next(state, time, waiter) end
  if ARGV.waiter == '' then dismissed_up_to = last_dismissal() end
  if waiter ~= '' and not must_leave then
    local wanted = limit > 0 and WORD.slotted or mode
    was_queued = enqueue(waiter, ticket, wanted, ARGV.polls, tonumber(ARGV.life), ARGV.record, time)
  end
  local may_change, offered
  if may_enter and slots then
    local first = ours and ours.blocker or first_in_queue(time)
    local has_way = first and has_room(state, first, time)
    local is_blocked = first and first.id ~= waiter and not has_way
    local due = first and first.notified > 0 and first.notified + TIME.notify_timeout + 1
    if first and first.opaque then
      offered = NUMBER.offered_to_newer
    elseif due and has_way then
      offered = NUMBER.offered
    elseif is_blocked and waiter ~= '' and is_watcher(waiter, first) then
      offered = NUMBER.watches
    end
    may_change = due and due - time or TIME.notify_timeout
    if is_blocked and limit > 0 and first.mode == WORD.slotted then
      collector = shown_record(first.record)
      -- For us it is as if the slots were taken, so only a watcher needs to poll again soon.
      if offered ~= NUMBER.watches then
        may_change = first_end and first_end - time or remaining_ms(time)
      end
    end
  else
    -- If there is no slot for us, there is none for the first waiter either.
    -- Of those who want other slots, one may have died that was notified.
    if slots or certain then notify_next(state, time, waiter) end
    may_change = first_end and state == 'shared' and first_end - time or remaining_ms(time)
    -- A waiter before us keeps us from a free slot.
    local blocker = ours and ours.blocker
    if blocker and blocker.notified > 0 and has_room(state, blocker, time) then
      offered, may_change = NUMBER.offered, blocker.notified + TIME.notify_timeout + 1 - time
    elseif blocker then
      collector = shown_record(blocker.record)
      if certain and waiter ~= ''
        and number_in_the_way(redis.call('ZRANK', KEYS.queue, waiter) or 0, ours.pool) == 1 then
        offered, may_change = NUMBER.watches, TIME.notify_timeout
      end
    end
  end
  if state == 'free' then return {WORD.queued, queue_status(may_change, offered)} end
  local refusal, _, holds = describe(WORD.held, value, type_name, time)
  refusal[REPLY.holder.extra] = queue_status(may_change, offered)
  return with_value(refusal, value, holds, time)
end

local runs, unreadable = '', nil
if ARGV.wants_runs == '1' then
  -- Without the runs, the command would run again although the period forbids it (R11).
  runs, unreadable = stored_runs()
  if not runs then return unreadable end
  runs = without_kept(runs)
end

local fence, record = nil, without_list(ARGV.record)
if mode == WORD.alone then
  fence, failure = grant_exclusive(token, id, ttl, ARGV.supervised, ARGV.record, time)
  if not fence then return failure end
else
  -- Those who restore or lift a hold need its token, and KEYS.lock has none of a share (F4).
  if string.match(record, HOLD) then
    record = with_field(record, WORD.token_field, '"' .. token .. '"') or record
  end
  fence, failure = next_fence(time, ttl)
  failure = failure or add_share(id, ttl, {
    fence = fence, since = time, supervised = ARGV.supervised, record = record
  }, slots_at(ours and ours.pool or {}, slots), time)
  if failure then
    -- No part of the share must remain.
    forget_share(id)
    bound_shares(time)
    return failure
  end
end

was_queued = true  -- if it is in the queue at all: a grant queues no waiter
local queue = queue_status(-1)
if waiter ~= '' then drop(waiter) end
if mode == WORD.shared then notify_next('shared', time) end
-- The waiter that is now first last polled when it was further back, or when another lease held the
-- lock, so it does not know when this lease ends.
if waiter ~= '' and mode == WORD.alone then
  notify_standbys(0, host_of(waiter), WORD.standby, WORD.taken, time)
elseif waiter ~= '' then
  notify_first_of_end('shared', time)
end
return {WORD.granted, fence, id, table.concat(slots, ','), queue, runs}
