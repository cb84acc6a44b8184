-- Gives our lease a new ttl. Never restores an expired lease, and shortens one only to the longest
-- ttl that was requested for it (R4). If only some of the keys are here (D1), it does what they
-- allow, and returns elsewhere() if they do not show whether the lease is ours.
-- A user of the lease gets an end of its own, the largest of all ends of the lease, which it may
-- rely on whatever others do (U2). It cannot come once the keeper has left. Beside users, the own
-- end of a keeper that renews the lease is stored, too: when they have ended, the lease ends with
-- it.
-- ARGV: token, ttl, slots as '1,4' or 'a,b' or '', fence or 0 (unknown to the caller), the user's
--       id ('': the keeper, or a request by hand) and record, whether it is new (0 or 1)
-- -> {'extended', …} as `held`, which describes our own lease, with the first slot at the end if it
--    is a share; the remaining time is the user's
--    | {'gone', …} | {'held', …} | an error
forget_absent()
local time, ttl, fence = now(), tonumber(ARGV.ttl), ARGV.fence
local id = redis.sha1hex(ARGV.token)
local user = ARGV.user
local how, ends, is_marked = own_lease(ARGV.token, time, user ~= '')
if not how then return refusal_of_writes() or ends end
local users, unread = read_users(how, id, time)
if user ~= '' and not users then return unread end
if users and users.left and (user == '' or ARGV.is_new == '1') then
  return refusal_of_writes() or {WORD.gone, NUMBER.gone_released}
end

-- The end of a user that extends a lease which lasts until `ends`. It does not rely on an end that
-- others may shorten.
local function end_of_user(ends)
  return user == '' and ends or math.min(ends, time + max_requested_ttl(users, ttl))
end
-- `before`: the end of the lease until now, `its_end`: from now on.
local function keep_ends(before, its_end)
  if user ~= '' then
    local known = math.min(before, time + max_requested_ttl(users, ttl))
    users.keeper = users.keeper or users.is_renewed and known or nil
    return put_user(how, id, users, user, end_of_user(its_end), ARGV.user_record, time)
  end
  -- If the record is elsewhere, keep_record.lua does it there.
  return users and move_keeper(how, id, users, ttl, time)
end

-- A server that granted the lease late gave it another fence (R6). A server that cannot store the
-- fence still keeps the lease.
local function keep_fence()
  if fence ~= '0' then lift_fence(how, id, fence, ttl) end
  redis.pcall('PEXPIRE', KEYS.fence, decimal(FENCE_IDLE + ttl))
end

-- PEXPIRE works even when the server is out of memory. So for an exclusive lease it comes first,
-- and it alone decides. It is also called for a lease that ends later, since a demoted master
-- refuses it.
if how == 'exclusive' then
  local rest = redis.call('PTTL', KEYS.lock)
  local life = math.min(math.max(rest, ttl), max_life(users, user, ttl, time))
  redis.call('PEXPIRE', KEYS.lock, decimal(life))
  redis.pcall('PEXPIRE', KEYS.owner, decimal(life))
  local failure = raise_max_ttl(how, id, users and users.max_ttl, ttl)
    or keep_ends(time + (rest > 0 and rest or life), time + life)
  if failure then return failure end
  keep_fence()
  local reply = describe(WORD.extended, ARGV.token, nil, time)
  reply[REPLY.holder.remaining_ms] = end_of_user(time + life) - time
  return reply
end

local refused = refusal_of_writes()
if refused then return refused end
-- Deleting the key deletes the lock, even a shared one (M1).
if not is_marked then return not_ours(id, time, nil, nil, user ~= '') end
local slots = slots_in(ARGV.slots)
local parts = {}
-- All shares must be here, or the lease counts as not ours (M4).
for nth = 1, math.max(#slots, 1) do
  local part, slot = part_id(id, nth), slots[nth] or NO_SLOT
  local its_end = nth == 1 and ends or share_end(part, time)
  if not its_end then return {WORD.gone, NUMBER.gone_unknown} end
  local share, unreadable = describe_share('', part, its_end, time)
  if share[REPLY.holder.extra] ~= slot then
    return unreadable or {WORD.gone, NUMBER.gone_unknown}
  end
  if slot ~= NO_SLOT then
    if not KEYS.slots then return elsewhere() end
    -- The table of slots may have been lost, and the slot granted to another client (M2).
    local other_end, there = end_of_other_in(slot, part, time)
    if other_end then return describe_share(WORD.held, there, other_end, time) end
    local restored = there ~= part and redis.pcall('HSET', KEYS.slots, slot, part)
    if is_error(restored) then return restored end
  end
  parts[nth] = part
end
local before, last = ends, math.min(
  math.max(ends, time + ttl), time + max_life(users, user, ttl, time))
if last ~= ends then
  ends = last
  for _, part in ipairs(parts) do
    local added = redis.pcall('ZADD', KEYS.readers, decimal(ends), part)
    if is_error(added) then return added end
  end
end
local failure = raise_max_ttl(how, id, users and users.max_ttl, ttl)
  or keep_ends(before, ends) or bound_shares(time)
if failure then return failure end
keep_fence()
return describe_share(WORD.extended, id, end_of_user(ends), time)
