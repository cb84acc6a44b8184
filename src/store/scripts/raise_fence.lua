-- Lifts the fence counter to the lease's fence, if the lease is here (R6: written back before the lease counts as granted).
-- ARGV: token, fence, ttl in ms
-- -> {'raised'} | {'gone', …} | {'held', …} | an error
local value, type_name = look()
if is_error(value) then return value end
if value ~= ARGV[1] then return not_ours(ARGV[1], value, type_name) end

local last, unusable = counter()
if not last then return unusable end
if last < tonumber(ARGV[2]) then
  local failure = first_error(
    set_counter(tonumber(ARGV[2]), tonumber(ARGV[3])),
    redis.pcall('HSET', OWNER, 'fence', ARGV[2]),
    redis.pcall('PEXPIRE', OWNER, ARGV[3])) -- the record may have been lost, and HSET makes one without an end
  if failure then return failure end
end
return {'raised'}
