-- Raises the fence counter to the lease's fence, if the lease is here. The fence is written back
-- before the lease counts as granted (R6).
-- ARGV: token, fence, ttl
-- -> {'raised'} | {'gone', …} | {'held', …} | an error
local time = now()
local id = redis.sha1hex(ARGV.token)
local how, reply, is_marked = own_lease(ARGV.token, time)
if not how then return reply end
if how == 'shared' and not is_marked then return not_ours(id, time) end

return lift_fence(how, id, ARGV.fence, tonumber(ARGV.ttl)) or {WORD.raised}
