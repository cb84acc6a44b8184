-- Compare and delete. If the lease has users, the keeper leaves it to them: it expires with the
-- last of them at the latest, and the last to end deletes it (U3).
-- ARGV: token,
--       by hand (0 or 1: the request is not from the process that keeps the lease),
--       expire_in in ms (not 0: the lease is kept and expires after this time, before which no
--       client may acquire the lock),
--       our waiter id ('': we do not wait), and for the renewed queue entry: ticket, polls, life,
--       mode as in queue.lua,
--       owner record ('': none): of the queue entry, or with expire_in the new record of the lease,
--       the run that ends with this lease ('': none), see runs.lua,
--       the id of the user that ends ('': the keeper, or a request by hand),
--       whether the lease may have users (0 or 1),
--       a stop request for its users, a JSON object ('': none),
--       how long a tombstone must stay here, even if the lease is not here, in ms (0: for as long
--       as the lease, and only if it is here),
--       the slots of a stray grant as '1,4', which alone is to be released ('': any lease)
-- -> {'released', whether the run is recorded, 0 or NUMBER.left_to_users if the lease is left to
--    its users or NUMBER.sign_is_due if leave_end() could not leave its sign, for how many ms the
--    lease would have lasted if it may have users}
--    | {'supervised', …} as `held` | {'gone', …} | {'held', …} | an error
forget_absent()
local token, by_hand, expire_in = ARGV.token, ARGV.by_hand == '1', tonumber(ARGV.expire_in)
local waiter, user = ARGV.waiter, ARGV.user
local id, time = redis.sha1hex(token), now()
local refused = refusal_of_writes()
if refused then return refused end
-- Queue us before any waiter is notified: a failed attempt must not lose its position to the waiter
-- behind it.
if waiter ~= '' and KEYS.queue then
  enqueue(
    waiter, tonumber(ARGV.ticket), ARGV.mode, ARGV.polls, tonumber(ARGV.life), ARGV.record, time)
end
local tombstone, tombstone_life = by_hand and id or LEFT .. id, tonumber(ARGV.tombstone_life)
local how, ends = own_lease(token, time, user ~= '')
if not how then
  -- A user may restore the lease here (U4), and any client a hold (F3).
  if tombstone_life > 0 and not is_error(ends) then
    leave_tombstones({tombstone}, nil, tombstone_life, time)
  end
  return ends
end
for nth, slot in ipairs(how == 'shared' and slots_in(ARGV.slots) or {}) do
  if not KEYS.shares then return elsewhere() end
  local share = read_share(redis.call('HGET', KEYS.shares, part_id(id, nth)))
  if not share or share.slot ~= slot then return {WORD.gone, NUMBER.gone_unknown} end
end

if by_hand then
  -- Only this key shows whether a run keeps the lease (R9).
  local source = KEYS.owner
  if how == 'shared' then source = KEYS.shares end
  if not source then return elsewhere() end
  local ours, unread
  if how == 'exclusive' then
    ours, unread = describe(WORD.supervised, token, nil, time)
  else
    ours, unread = describe_share(WORD.supervised, id, ends, time)
  end
  if unread then return unread end
  if ours[REPLY.holder.supervised] == 1 and not is_kept(ours[REPLY.holder.record]) then
    return ours
  end
end

local function rest_of_lease()
  return how == 'shared' and ends - time or remaining_ms(time)
end
local rest_before = ARGV.may_have_users == '1' and math.max(0, rest_of_lease()) or nil
local function released(recorded, what)
  return {WORD.released, recorded, what or 0, rest_before}
end
-- Publishes the word to the first waiter that is alive.
local function deliver_to_first(word)
  while true do
    local entry = first_in_queue(time)
    if not entry or deliver(entry, word) ~= false then return end
  end
end
-- Makes the lease expire then, and informs the first waiter, which waits for its end.
local function expire_after(rest)
  if how == 'exclusive' then
    redis.call('PEXPIRE', KEYS.lock, decimal(rest))
    redis.pcall('PEXPIRE', KEYS.owner, decimal(rest))
  else
    local first = KEYS.shares and read_share(redis.pcall('HGET', KEYS.shares, id))
    for _, part in ipairs(parts_of(id, first)) do
      if share_end(part, time) then
        redis.call('ZADD', KEYS.readers, decimal(time + rest), part)
      end
    end
    bound_shares(time)
  end
  deliver_to_first(WORD.recheck)
end
-- The data of our lease: its owner record, or its share; nil if it was lost.
local function data_of_lease()
  if how == 'shared' then return read_share(redis.pcall('HGET', KEYS.shares, id)) end
  local owner = read_owner()
  return owner.lease == id and owner or nil
end
-- Recorded while we have the lease, so a client that acquires later at this server sees it.
local function record_with(known)
  local record = known and known.record or ''
  return ARGV.run ~= '' and record_run(ARGV.run, id, record, time) and 1 or 0
end
local function ask_users(known)
  local asked = ARGV.request ~= '' and known
    and with_field(known.record, WORD.stop_field, ARGV.request)
  if not asked then return end
  known.record = asked
  return first_error(
    how == 'shared' and write_share(id, known) or redis.pcall('HSET', KEYS.owner, 'record', asked))
end

if user ~= '' or ARGV.may_have_users == '1' then
  local users, unread = read_users(how, id, time)
  if not users then return unread end
  if user ~= '' then
    remove_user(users, user)
    local is_past = users.keeper and users.keeper <= time
    if is_past and users.known and not users[1] then users.left = users.left or 0 end
  elseif users.left then
    return {WORD.gone, NUMBER.gone_released}
  else
    users.left = expire_in > 0 and time + expire_in or 0
    -- It stops a late heal by the process that keeps this lease; by hand, that learns that the
    -- lease was released, not lost. And if a user restores the lease, it shows that the keeper has
    -- left.
    if expire_in == 0 then
      leave_tombstones({tombstone}, nil, math.max(rest_of_lease(), tombstone_life), time)
    end
    -- From now on it is the lease of its users, if it has any.
    local failure = users.hold and move_hold(how, id, nil)
    if failure then return failure end
  end
  if not users.left or users[1] or not users.known then
    local failure = write_users(how, id, users)
    if failure then return failure end
    local last = users.left or users.hold or users.keeper
    if not last then return released(0) end
    for _, other in ipairs(users) do last = math.max(last, other.ends) end
    -- A user that the record no longer shows relies on no more than the present end.
    if not users.known then last = math.max(last, time + rest_of_lease()) end
    local rest = last > time and last - time or TIME.idle_life
    -- The keeper stays, and the lease ends with it again.
    if not users.left then
      if rest < rest_of_lease() then expire_after(rest) end
      return released(0)
    end
    local known = data_of_lease()
    failure = ask_users(known)
    expire_after(rest)
    return failure or released(record_with(known), NUMBER.left_to_users)
  end
  expire_in = math.max(0, users.left - time)
end
if how == 'exclusive' and expire_in == 0 then
  local recorded, sign = delete_exclusive(id, ARGV.run, time)
  notify_next(lock_state(time), time, waiter)
  return released(recorded, sign)
end

local known = data_of_lease()
local recorded = record_with(known)

if expire_in > 0 then
  local record = ARGV.record
  -- The last user has ended: from now on only --min-hold keeps the lease.
  if user ~= '' and known then
    record = with_field(known.record, WORD.kept_field, decimal(expire_in)) or ''
  end
  if how == 'exclusive' and known and record ~= '' then
    redis.pcall('HSET', KEYS.owner, 'record', record)
  end
  for _, part in ipairs(how == 'shared' and record ~= '' and parts_of(id, known) or {}) do
    local its = part == id and known or read_share(redis.pcall('HGET', KEYS.shares, part))
    if its then
      its.record = record
      write_share(part, its)
    end
  end
  expire_after(expire_in)
  return released(recorded)
end

-- While a slot moves, we lose access to a key as soon as it becomes empty here.
forget_ended_shares(time)
local parts, own = parts_of(id, known), 1
for nth = 2, #parts do
  if share_end(parts[nth], time) then own = own + 1 end
end
local was_last = redis.call('ZCARD', KEYS.readers) == own
forget_share(id)
local sign = leave_end(id, known and known.record, time)
if was_last then end_sharing() else bound_shares(time) end
local state = was_last and 'free' or lock_state(time)
notify_next(state, time, waiter)
if state and state ~= 'free' then notify_first_of_end(state, time) end
return released(recorded, sign)
