-- Restores a lease, or only its record, on a server that lost it, after a quorum extended it in the
-- same round (R5). Never shortens a lease, and never replaces a record of ours, which may have a
-- stop request. A user of the lease also restores its own entry if the record was lost (U4), even
-- after the keeper has released the lease there. A hold lasts until its own end, whichever process
-- restores it (F2), and takes no slot that may be another's.
-- ARGV: token, ttl, fence, age, supervised, owner record, mode (x or s), slots as '1,4' or
--       'a,b' or '', the user's id ('': the keeper) and record
-- -> {'healed'} | {'gone', …} if it was released by hand or broken meanwhile
--    | {'held', …} | an error
local token, ttl, slots = ARGV.token, tonumber(ARGV.ttl), slots_in(ARGV.slots)
local id, time = redis.sha1hex(token), now()
local user = ARGV.user
-- By its keeper or by hand. An error ends the script, as such a lease must not be restored (R11).
local was_released = redis.call('ZSCORE', KEYS.released, id)
  or redis.call('ZSCORE', KEYS.released, LEFT .. id)
local was_broken = redis.call('ZSCORE', KEYS.released, BROKEN .. id)
if was_released and user == '' then return {WORD.gone, NUMBER.gone_released} end
if was_broken then return not_ours(id, time) end
local record = ARGV.record
local hold = string.match(record, HOLD)
local has_left = was_released or has_field(record, WORD.lifted_field)
if was_released then
  record = with_length(record, nil)
elseif hold then
  ttl = math.max(ttl, tonumber(hold) - tonumber(ARGV.age))
end
-- Of the lease, before its record is written anew.
local users = {known = true}
local function restore_users(how, ends, ends_here)
  if has_left then users.left = users.left or 0 end
  -- Its record was lost alone, perhaps with users, who rely on no more than its present end (U3).
  if not users.known then
    users[#users + 1] = {id = UNKNOWN_USER, ends = ends_here, since = time, record = '{}'}
  end
  users.known = true
  if user ~= '' then return put_user(how, id, users, user, ends, ARGV.user_record, time) end
  return write_users(how, id, users)
end

local state, value, type_name = lock_state(time)
if not state then return value end
local last = counter(MAX_FENCE)
local since = time - tonumber(ARGV.age)

if ARGV.mode == WORD.alone then
  local rest = ttl
  if value == token then
    local owner = read_owner()
    if owner.lease == id and owner.record then
      -- The grant may have come late, with another fence (R6).
      lift_fence('exclusive', id, ARGV.fence, ttl)
      return {WORD.healed}
    end
    local unread
    users, unread = read_users('exclusive', id, time)
    if not users then return unread end
    rest = redis.call('PTTL', KEYS.lock)
    ttl = math.max(ttl, rest)
  else
    if state ~= 'free' then return describe(WORD.held, value, type_name, time) end
    local set = set_lock(token, decimal(ttl))
    if is_error(set) then return set end
  end
  write_owner(id, ARGV.fence, since, ARGV.supervised, record, ttl)
  local failure = restore_users('exclusive', time + ttl, time + rest)
  if failure then return failure end
else
  if state ~= 'free' and value ~= SHARED then
    return describe(WORD.held, value, type_name, time)
  end
  local ends = share_end(id, time)
  for nth, slot in ipairs(slots) do
    local other, unknown = end_of_other_in(slot, part_id(id, nth), time), nil
    -- No process of the hold would find out later that the slot is lost (M2).
    if not other and hold and not ends then other, unknown = reader_in(slot, time) end
    if unknown and not other then return unknown end
    if other then return describe(WORD.held, SHARED, nil, time) end
  end
  local known = ends and read_share(redis.call('HGET', KEYS.shares, id))
  if ends then
    local unread
    users, unread = read_users('shared', id, time)
    if not users then return unread end
  end
  ttl = math.max(ttl, (ends or 0) - time)
  local failure = add_share(id, ttl, {
    fence = ARGV.fence, since = since, supervised = ARGV.supervised,
    record = known and known.record or record
  }, slots, time) or restore_users('shared', time + ttl, ends or time + ttl)
  if failure then return failure end
end
if last and last < tonumber(ARGV.fence) then set_counter(tonumber(ARGV.fence), ttl) end
return {WORD.healed}
