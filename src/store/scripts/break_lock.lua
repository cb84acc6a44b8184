-- Takes the lock away from whoever holds it, whatever it is.
-- ARGV: the fence it must still have, or '' for any
-- -> {'broken', …} as `held` | {'other', …} as `held` | {'free'} | an error
local value, type_name = look()
if is_error(value) then return value end
if not value then return {'free'} end

local holder = describe('broken', value, type_name)
if ARGV[1] ~= '' and holder[6] ~= ARGV[1] then
  holder[1] = 'other'
  return holder
end
redis.call('DEL', LOCK)
if holder[5] == 1 then redis.pcall('DEL', OWNER) end
return holder
