-- Compare and delete.
-- ARGV: token, by hand (0 or 1: asked for by somebody else than the process that keeps the lease),
--       keep (ms; not 0: nobody may have the lock sooner, so it is left to end by itself)
-- -> {'released'} | {'supervised', …} as `held` | {'gone', …} | {'held', …} | an error
local value, type_name = look()
if is_error(value) then return value end
if value ~= ARGV[1] then return not_ours(ARGV[1], value, type_name) end

local ours = describe('supervised', value)
local left, owned, supervised = ours[4], ours[5] == 1, ours[8] == 1
if ARGV[2] == '1' and supervised then return ours end

local keep = tonumber(ARGV[3])
if keep > 0 then
  redis.call('PEXPIRE', LOCK, ARGV[3])
  redis.pcall('PEXPIRE', OWNER, ARGV[3])
  return {'released'}
end

redis.call('DEL', LOCK)
if owned then redis.pcall('DEL', OWNER) end
if ARGV[2] == '1' and left > 0 then
  -- A process that keeps this lease learns that it was released, not lost (R9).
  local time = now()
  redis.pcall('ZREMRANGEBYSCORE', RELEASED, '-inf', decimal(time))
  redis.pcall('ZADD', RELEASED, decimal(time + left), ours[2])
  local kept = redis.pcall('PTTL', RELEASED)
  if type(kept) == 'number' and kept < left then redis.pcall('PEXPIRE', RELEASED, decimal(left)) end
end
return {'released'}
