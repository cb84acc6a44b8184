-- Gives our lease a new ttl; never shortens it, never brings it back.
-- ARGV: token, ttl in ms
-- -> {'extended', …} as `held`, describing our own lease | {'gone', …} | {'held', …} | an error
local ttl = tonumber(ARGV[2])
local value, type_name = look()
if is_error(value) then return value end
if value ~= ARGV[1] then return not_ours(ARGV[1], value, type_name) end

-- PEXPIRE passes even when the server is out of memory, so it comes first and alone decides.
if redis.call('PTTL', LOCK) < ttl then
  redis.call('PEXPIRE', LOCK, ARGV[2])
  redis.pcall('PEXPIRE', OWNER, ARGV[2])
end
redis.pcall('PEXPIRE', FENCE, decimal(FENCE_IDLE + ttl))
return describe('extended', value)
