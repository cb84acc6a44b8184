-- Raises the fence counter to the lease's fence, if the lease is here (R6: written back before the
-- lease counts as granted).
-- ARGV: token, fence, ttl
-- -> {'raised'} | {'gone', …} | {'held', …} | an error
local time = now()
local how, reply = mine(ARGV.token, time)
if not how then return reply end

return lift_fence(how, redis.sha1hex(ARGV.token), ARGV.fence, tonumber(ARGV.ttl)) or {WORD.raised}
