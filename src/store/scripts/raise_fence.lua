-- Lifts the fence counter to the lease's fence, if the lease is here (R6: written back before the lease counts as granted).
-- ARGV: token, fence, ttl
-- -> {'raised'} | {'gone', …} | {'held', …} | an error
local time = now()
local how, reply = mine(ARGV[1], time)
if not how then return reply end

return lift_fence(how, redis.sha1hex(ARGV[1]), ARGV[2], tonumber(ARGV[3])) or {'raised'}
