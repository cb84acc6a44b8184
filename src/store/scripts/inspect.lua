-- Reports the holder of the lock and its waiters. Read-only.
-- ARGV: the id of a lease: if that is a share, it is described instead of all shares together;
--       whether to report the kept runs, too (0 or 1); the slots of the pool, in the order of the
--       digits ('': numbers)
-- -> {'free', parties} | {'held', …, parties} | an error
--    parties: {number of waiters, {{mode, ms waited, record}, …},
--              number of shares, {as `held` with the slot at the end, …},
--              a digit for each slot up to the last taken one, 1: it is free (all 0 if that is
--              unknown, or if the slots of the lock have names and these are not given),
--              time, the last runs or '', the users of the lease or the shares, see REPLY.user};
--              each list has at most the first MOST elements
local MOST = 16
local is_partial = forget_absent()
local time = now()
local state, value, type_name = lock_state(time)
if not state then return value end
local runs, unreadable = stored_runs(true)
if not runs then return unreadable end
if ARGV.kept ~= '1' then runs = without_kept(runs) end

local waiters = {}
for _, id in ipairs(KEYS.queue and redis.call('ZRANGE', KEYS.queue, 0, MOST - 1) or {}) do
  local entry = read_entry(id)
  if not has_ended(entry, time) and not entry.opaque then
    waiters[#waiters + 1] =
      {entry.mode, math.max(0, time - entry.since), shown_record(entry.record)}
  end
end
local shares, users = {}, {}
if value == SHARED then
  local after = '(' .. decimal(time)
  local ends =
    redis.call('ZRANGEBYSCORE', KEYS.readers, after, '+inf', 'WITHSCORES', 'LIMIT', 0, MOST)
  local ids = {}
  for i = 1, #ends, 2 do
    ids[#ids + 1] = ends[i]
    shares[#shares + 1] = describe_share('share', ends[i], tonumber(ends[i + 1]), time)
  end
  users = describe_users_of_shares(ids, time)
elseif value and not type_name then
  describe_users(users, read_users('exclusive', redis.sha1hex(value), time), time)
end
local share_count = KEYS.readers and count_readers(time) or 0
if is_error(share_count) then return share_count end
local free_slots = ''
if value == SHARED then
  local pool = {limit = NUMBER.max_slots}
  if ARGV.slots ~= '' then
    pool.slots = slots_in(ARGV.slots)
    pool.limit = #pool.slots
  end
  local taken, count, _, unknown = taken_slots(pool, time)
  if not taken then return count end
  free_slots = free_digits(taken, count)
  -- Then no slot is known to be free, but the rest is still worth reporting.
  if unknown and not is_partial then free_slots = string.rep('0', NUMBER.max_slots) end
end
local parties = {
  KEYS.queue and redis.call('ZCARD', KEYS.queue) or 0, waiters, share_count, shares, free_slots,
  decimal(time), runs, users
}

if state == 'free' then return {WORD.free, parties} end
local ends = value == SHARED and ARGV.share ~= '' and share_end(ARGV.share, time)
local holder, _, holds
if ends then
  holder = describe_share(WORD.held, ARGV.share, ends, time)
else
  holder, _, holds = describe(WORD.held, value, type_name, time)
end
-- While the slot moves, the owner record may be elsewhere. Then it is not known to be foreign.
if not KEYS.owner then holder[REPLY.holder.ours] = 1 end
holder[REPLY.holder.extra] = parties
return ends and holder or with_value(holder, value, holds, time)
