-- Sends a stop request to the process that keeps a lease (R12). The request becomes a field of the
-- record of that lease only, and the reply to the next extend brings it to that process.
-- While a cluster moves the slot, a lease whose record is not here is not shown (D1).
-- ARGV: the id of the lease ('': only inspect), the slot, a number or a name, whose share to
--       inspect or -1, the request as a JSON object, whether the lease of this id is exclusive (0
--       or 1)
-- -> {'free', ended} | {'held', …, users, ended}, which describes that lease, or the share in the
--    slot, if it is here, and the users of the lease, see REPLY.user | an error
--    ended: 1 if the lease of this id is known to have been released after it was asked to stop
forget_absent()
local id, slot, time = ARGV.lease, slot_of(ARGV.slot), now()
local refused = refusal_of_writes()
if refused then return refused end
-- KEYS.lock is on no server of the cluster, so an exclusive lease is gone.
if not KEYS.readers and ARGV.exclusive == '1' and read_lock() == false then
  return {WORD.free, 0}
end
local state, value, type_name = lock_state(time)
if not state then return value end
local ended = has_ended_by_release(id) and 1 or 0
if state == 'free' then return {WORD.free, ended} end

if value == SHARED then
  if not KEYS.shares or slot ~= NO_SLOT and not KEYS.slots then
    return elsewhere()
  end
  if slot ~= NO_SLOT then
    local reader, unreadable = reader_in(slot, time)
    if not reader then return unreadable or {WORD.free, ended} end
    -- If the lease takes several slots, its process reads the record of the first share.
    id = string.match(reader, '^[^' .. WORD.part_sign .. ']+')
  end
  local ends = id ~= '' and share_end(id, time)
  if not ends then
    local reply = describe(WORD.held, value, type_name, time)
    reply[REPLY.holder.extra], reply[REPLY.holder.ended] = {}, ended
    return reply
  end
  local share = ARGV.request ~= '' and read_share(redis.call('HGET', KEYS.shares, id))
  local asked = share and with_field(share.record, WORD.stop_field, ARGV.request)
  if asked then
    share.record = asked
    local failure = first_error(write_share(id, share))
    if failure then return failure end
  end
  local reply, unread = describe_share(WORD.held, id, ends, time)
  reply[REPLY.holder.extra] = describe_users_of_shares({id}, time)
  reply[REPLY.holder.ended] = ended
  return unread or reply
end

if not KEYS.owner then return elsewhere() end
local owner = read_owner()
if ARGV.request ~= '' and owner.lease == id and not type_name
  and redis.sha1hex(value) == id then
  local asked = with_field(owner.record, WORD.stop_field, ARGV.request)
  if asked then redis.call('HSET', KEYS.owner, 'record', asked) end
end
local reply = describe(WORD.held, value, type_name, time)
local users = value ~= SHARED and read_users('exclusive', reply[REPLY.holder.id], time)
reply[REPLY.holder.extra] = describe_users({}, users, time)
reply[REPLY.holder.ended] = ended
return with_value(reply, value, {})
