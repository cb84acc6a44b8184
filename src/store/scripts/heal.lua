-- Restores a lease, or only its record, on a server that lost it, after a quorum extended it in the
-- same round (R5). Never shortens a lease, and never replaces a record of ours, which may have a
-- stop request.
-- ARGV: token, ttl, fence, age, supervised, owner record, mode (x or s), slots as '1,4' or ''
-- -> {'healed'} | {'gone', …} if it was released by hand or broken meanwhile
--    | {'held', …} | an error
local token, ttl, slots = ARGV.token, tonumber(ARGV.ttl), slots_in(ARGV.slots)
local id, time = redis.sha1hex(token), now()
if has_tombstone(id) then return not_ours(id, time) end

local state, value, type_name = lock_state(time)
if not state then return value end
local last = counter(MAX_FENCE)
local since = time - tonumber(ARGV.age)

if ARGV.mode == WORD.alone then
  if value == token then
    if read_owner().lease == id then return {WORD.healed} end
    ttl = math.max(ttl, redis.call('PTTL', KEYS.lock))
  else
    if state ~= 'free' then return describe(WORD.held, value, type_name, time) end
    local set = redis.pcall('SET', KEYS.lock, token, 'NX', 'PX', ARGV.ttl)
      or redis.error_reply(NOT_SET)
    if is_error(set) then return set end
  end
  write_owner(id, ARGV.fence, since, ARGV.supervised, ARGV.record, ttl)
else
  if state ~= 'free' and value ~= SHARED then
    return describe(WORD.held, value, type_name, time)
  end
  for nth, slot in ipairs(slots) do
    if end_of_other_in(slot, part_id(id, nth), time) then
      return describe(WORD.held, SHARED, nil, time)
    end
  end
  local ends = share_end(id, time)
  local known = ends and read_share(redis.call('HGET', KEYS.shares, id))
  local failure = add_share(id, math.max(ttl, (ends or 0) - time), {
    fence = ARGV.fence, since = since, supervised = ARGV.supervised,
    record = known and known.record or ARGV.record
  }, slots, time)
  if failure then return failure end
end
if last and last < tonumber(ARGV.fence) then set_counter(tonumber(ARGV.fence), ttl) end
return {WORD.healed}
