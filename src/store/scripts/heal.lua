-- Restores a lease on a server that lost it, after a quorum extended it in the same round (R5).
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
  if state ~= 'free' and value ~= token then return describe(WORD.held, value, type_name, time) end
  local set = redis.pcall('SET', KEYS.lock, token, 'NX', 'PX', ARGV.ttl)
  if not set and value ~= token then set = redis.error_reply(NOT_SET) end
  if is_error(set) then return set end
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
  local failure = add_share(id, ttl, {
    fence = ARGV.fence, since = since, supervised = ARGV.supervised, record = ARGV.record
  }, slots, time)
  if failure then return failure end
end
if last and last < tonumber(ARGV.fence) then set_counter(tonumber(ARGV.fence), ttl) end
return {WORD.healed}
