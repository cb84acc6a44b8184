-- Takes the lock away from whoever holds it, whatever it is; a shared one from all who share it.
-- ARGV: the fence it must still have, or '' for any; the owner record of whoever breaks it
-- -> {'broken', …} as `held` | {'other', …} as `held` | {'free'} | an error
local time = now()
local state, value, type_name = standing(time)
if not state then return value end
if state == 'free' then return {'free'} end

local holder = describe('broken', value, type_name, time)
if ARGV[1] ~= '' and holder[6] ~= ARGV[1] then
  holder[1] = 'other'
  return holder
end
local broken = state == 'shared' and redis.call('ZRANGE', READERS, 0, -1) or {holder[2]}
redis.call('DEL', LOCK)
if state == 'shared' then redis.call('DEL', READERS, SHARES, SEATS) end
if holder[5] == 1 then
  -- Processes that keep these leases learn who broke them, and why.
  local tombstones = {'!' .. ARGV[2]}
  for i, id in ipairs(broken) do tombstones[i + 1] = 'broken:' .. id end
  leave_tombstones(tombstones, holder[4], time)
  redis.pcall('DEL', OWNER)
end
call_next('free', time)
return holder
