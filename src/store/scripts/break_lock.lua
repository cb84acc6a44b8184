-- Breaks the lease that holds the lock; if the lock is shared, all shares. While a cluster moves
-- the slot, only if all is here that shows whose lease it is, and can tell its holder who broke it
-- (D1).
-- ARGV: the fence that the lease must still have, or '' for any; the owner record of the breaker;
--       the id of a foreign key that may be broken, from a 'foreign' reply, or '';
--       the id of a hold, the only lease to be broken, or '', and for how many ms it must not
--       return, even if it is not here;
--       the slot whose lease to break, a number or a name ('': all of the lock)
-- -> {'broken', …} as `held` | {'other', …} as `held`, also for a lock without slots, if one is to
--    be broken | {'free'}: also if that hold is not here | an error
--    | {'foreign', …, size or -1} as `held`: the key is not a lease of ours, and was left alone;
--    size: of a string in bytes, otherwise in elements
local SIZE_OF = {
  string = 'STRLEN', hash = 'HLEN', list = 'LLEN', set = 'SCARD', zset = 'ZCARD', stream = 'XLEN'
}
forget_absent()
local refused = refusal_of_writes()
if refused then return refused end
local time = now()
local state, value, type_name = lock_state(time)
if not state then return value end
local is_share = ARGV.hold ~= '' and ARGV.slot ~= '' and KEYS.readers
  and share_end(ARGV.hold, time)
local is_alone = state == 'held' and not type_name and redis.sha1hex(value) == ARGV.hold
if ARGV.hold ~= '' and not is_share and not is_alone then
  if not KEYS.released then return elsewhere() end
  leave_tombstones({ARGV.hold}, ARGV.breaker, tonumber(ARGV.tombstone_life), time)
  return {WORD.free}
end
if state == 'free' then return {WORD.free} end
local source = KEYS.owner
if value == SHARED then source = KEYS.shares end
local needs_slots = ARGV.slot ~= '' and value == SHARED
if not source or needs_slots and not KEYS.slots then return elsewhere() end

local holder = describe(WORD.broken, value, type_name, time)
local slot_id
if needs_slots then
  local reader, problem = is_share and ARGV.hold, nil
  if not reader then reader, problem = reader_in(slot_of(ARGV.slot), time) end
  if not reader then return problem or {WORD.free} end
  slot_id = string.match(reader, '^[^' .. WORD.part_sign .. ']+')
  holder, problem = describe_share(WORD.broken, slot_id, share_end(slot_id, time) or time, time)
  if problem then return problem end
elseif ARGV.slot ~= '' then
  holder[REPLY.holder.word] = WORD.other
  return holder
end
if ARGV.fence ~= '' and holder[REPLY.holder.fence] ~= ARGV.fence then
  holder[REPLY.holder.word] = WORD.other
  return holder
end
if holder[REPLY.holder.ours] == 0 and holder[REPLY.holder.id] ~= ARGV.foreign then
  local count = SIZE_OF[type_name or 'string']
  local size = count and redis.pcall(count, KEYS.lock)
  holder[REPLY.holder.word] = WORD.foreign
  holder[REPLY.holder.extra] = type(size) == 'number' and size or -1
  return holder
end
if holder[REPLY.holder.ours] == 1 and not KEYS.released then
  return elsewhere()
end
if slot_id then
  leave_tombstones({slot_id}, ARGV.breaker, holder[REPLY.holder.remaining_ms], time)
  forget_share(slot_id)
  bound_shares(time)
  local state_now = lock_state(time)
  notify_next(state_now, time)
  if state_now and state_now ~= 'free' then notify_first_of_end(state_now, time) end
  return holder
end
local broken = value == SHARED and redis.call('ZRANGE', KEYS.readers, 0, -1)
  or {holder[REPLY.holder.id]}
redis.call('DEL', KEYS.lock)
if value == SHARED then
  redis.call('DEL', KEYS.readers, KEYS.shares)
  redis.pcall('DEL', KEYS.slots)
end
if holder[REPLY.holder.ours] == 1 then
  -- The processes that keep these leases can find out who broke them, and why.
  leave_tombstones(broken, ARGV.breaker, holder[REPLY.holder.remaining_ms], time)
  redis.pcall('DEL', KEYS.owner)
end
notify_next('free', time)
return holder
