-- Compare and delete.
-- ARGV: token,
--       by hand (0 or 1: the request is not from the process that keeps the lease),
--       expire_in in ms (not 0: the lease is kept and expires after this time, before which no
--       client may acquire the lock),
--       our waiter id ('': we do not wait), and for the renewed queue entry: ticket, polls, life,
--       mode as in queue.lua,
--       owner record ('': none): of the queue entry, or with expire_in the new record of the lease,
--       the run that ends with this lease ('': none), see runs.lua
-- -> {'released', whether the run is recorded} | {'supervised', …} as `held` | {'gone', …}
--    | {'held', …} | an error
forget_absent()
local token, by_hand, expire_in = ARGV.token, ARGV.by_hand == '1', tonumber(ARGV.expire_in)
local waiter = ARGV.waiter
local id, time = redis.sha1hex(token), now()
local refused = refusal_of_writes()
if refused then return refused end
-- Queue us before any waiter is notified: a failed attempt must not lose its position to the waiter
-- behind it.
if waiter ~= '' and KEYS.queue then
  enqueue(
    waiter, tonumber(ARGV.ticket), ARGV.mode, ARGV.polls, tonumber(ARGV.life), ARGV.record, time)
end
local how, ends = own_lease(token, time)
if not how then return ends end

local remaining
if by_hand then
  -- Only this key shows whether a run keeps the lease (R9).
  local source = KEYS.owner
  if how == 'shared' then source = KEYS.shares end
  if not source then return redis.error_reply(ELSEWHERE) end
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
  remaining = ours[REPLY.holder.remaining_ms]
end

-- Let the process that keeps this lease learn that it was released, not lost.
if by_hand and expire_in == 0 then leave_tombstones({id}, nil, remaining, time) end
if how == 'exclusive' and expire_in == 0 then
  local recorded = delete_exclusive(id, ARGV.run, time)
  notify_next(lock_state(time), time, waiter)
  return {WORD.released, recorded}
end

-- The data of our lease: its owner record, or its share.
local known
if how == 'exclusive' then
  known = read_owner()
  if known.lease ~= id then known = nil end
else
  known = read_share(redis.pcall('HGET', KEYS.shares, id))
end
local record = known and known.record or ''
-- Recorded while we have the lease, so a client that acquires later at this server sees it.
local recorded = ARGV.run ~= '' and record_run(ARGV.run, id, record, time) and 1 or 0

if expire_in > 0 then
  if how == 'exclusive' then
    redis.call('PEXPIRE', KEYS.lock, ARGV.expire_in)
    redis.pcall('PEXPIRE', KEYS.owner, ARGV.expire_in)
    if known and ARGV.record ~= '' then redis.pcall('HSET', KEYS.owner, 'record', ARGV.record) end
  else
    for _, part in ipairs(parts_of(id, known)) do
      if share_end(part, time) then
        redis.call('ZADD', KEYS.readers, decimal(time + expire_in), part)
      end
      local its = part == id and known or read_share(redis.pcall('HGET', KEYS.shares, part))
      if its and ARGV.record ~= '' then
        its.record = ARGV.record
        write_share(part, its)
      end
    end
    bound_shares(time)
  end
  -- The first waiter waits for the end of the lease, which has changed.
  deliver_to_first(WORD.recheck, time)
  return {WORD.released, recorded}
end

-- While a slot moves, we lose access to a key as soon as it becomes empty here.
forget_ended_shares(time)
local parts, own = parts_of(id, known), 1
for nth = 2, #parts do
  if share_end(parts[nth], time) then own = own + 1 end
end
local was_last = redis.call('ZCARD', KEYS.readers) == own
forget_share(id)
if was_last then end_sharing() else bound_shares(time) end
local state = was_last and 'free' or lock_state(time)
notify_next(state, time, waiter)
if state and state ~= 'free' then notify_first_of_end(state, time) end
return {WORD.released, recorded}
