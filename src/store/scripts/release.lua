-- Compare and delete.
-- ARGV: token,
--       by hand (0 or 1: asked for by another process than the one that keeps the lease),
--       keep in ms (not 0: no client may acquire the lock sooner, so the lease expires after this
--       time),
--       our waiter id ('': we do not wait), and to queue again: ticket, polls, life, mode as in
--       queue.lua,
--       owner record ('': none): of the queue entry, or with keep the record of the lease from
--       now on
-- -> {'released'} | {'supervised', …} as `held` | {'gone', …} | {'held', …} | an error
local token, by_hand, keep = ARGV.token, ARGV.by_hand == '1', tonumber(ARGV.keep)
local waiter = ARGV.waiter
local id, time = redis.sha1hex(token), now()
write_without_memory()
-- Before any waiter is notified: a failed attempt must not lose its position to the waiter behind
-- it.
if waiter ~= '' and QUEUE then
  enqueue(
    waiter, tonumber(ARGV.ticket), ARGV.mode, ARGV.polls, tonumber(ARGV.life), ARGV.record, time)
end
local how, ends = mine(token, time)
if not how then return ends end

local ours = how == 'exclusive' and describe(WORD.supervised, token, nil, time)
  or describe_share(WORD.supervised, id, ends, time)
local rest, owned = ours[REPLY.holder.left], ours[REPLY.holder.ours] == 1
local supervised = ours[REPLY.holder.supervised] == 1
if by_hand and supervised then return ours end

if keep > 0 then
  if how == 'exclusive' then
    redis.call('PEXPIRE', LOCK, ARGV.keep)
    redis.pcall('PEXPIRE', OWNER, ARGV.keep)
    if owned and ARGV.record ~= '' then redis.pcall('HSET', OWNER, 'record', ARGV.record) end
  else
    redis.call('ZADD', READERS, decimal(time + keep), id)
    bound_shares(time)
    local known = ARGV.record ~= '' and redis.call('HGET', SHARES, id)
    local head = known and string.match(known, '^%d+ %d+ %d %-?%d+ ')
    if head then redis.pcall('HSET', SHARES, id, head .. ARGV.record) end
  end
  -- The first waiter waits for the end of the lease, and that end has changed.
  local first = first_in_queue(time)
  if first then hears(first, WORD.recheck) end
  return {WORD.released}
end

-- A process that keeps this lease learns that it was released, not lost.
if by_hand then leave_tombstones({id}, rest, time) end
if how == 'exclusive' then
  redis.call('DEL', LOCK)
  if owned then redis.pcall('DEL', OWNER) end
else
  forget_share(id)
  bound_shares(time)
end
local state = standing(time)
call_next(state, time, waiter)
if how == 'shared' and state == 'shared' then tell_first_of_end(state, time) end
return {WORD.released}
