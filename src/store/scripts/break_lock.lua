-- Breaks the lease that holds the lock, of whatever kind it is; of a shared lock, all shares.
-- ARGV: the fence that the lease must still have, or '' for any; the owner record of the breaker
-- -> {'broken', …} as `held` | {'other', …} as `held` | {'free'} | an error
local time = now()
local state, value, type_name = standing(time)
if not state then return value end
if state == 'free' then return {WORD.free} end

local holder = describe(WORD.broken, value, type_name, time)
if ARGV.fence ~= '' and holder[REPLY.holder.fence] ~= ARGV.fence then
  holder[REPLY.holder.word] = WORD.other
  return holder
end
local broken = value == SHARED and redis.call('ZRANGE', KEYS.readers, 0, -1)
  or {holder[REPLY.holder.id]}
redis.call('DEL', KEYS.lock)
if value == SHARED then redis.call('DEL', KEYS.readers, KEYS.shares, KEYS.slots) end
if holder[REPLY.holder.ours] == 1 then
  -- The processes that keep these leases learn who broke them, and why.
  local tombstones = {'!' .. ARGV.breaker}
  for i, id in ipairs(broken) do tombstones[i + 1] = 'broken:' .. id end
  leave_tombstones(tombstones, holder[REPLY.holder.left], time)
  redis.pcall('DEL', KEYS.owner)
end
notify_next('free', time)
return holder
