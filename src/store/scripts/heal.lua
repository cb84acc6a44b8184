-- Gives a lease back to a server that lost it, after a quorum extended it in the same round (R5).
-- ARGV: token, ttl in ms, fence, age in ms, supervised, owner record
-- -> {'healed'} | {'gone', 1} when it was released by hand meanwhile | {'held', …} | an error
local token, ttl = ARGV[1], tonumber(ARGV[2])
local id = redis.sha1hex(token)
if type(redis.pcall('ZSCORE', RELEASED, id)) == 'string' then return {'gone', 1} end

local set = redis.pcall('SET', LOCK, token, 'NX', 'PX', ARGV[2])
if is_error(set) then return set end
if not set then
  local value, type_name = look()
  if is_error(value) then return value end
  if value ~= token then return describe('held', value, type_name) end
end

local last = counter()
if last and last < tonumber(ARGV[3]) then set_counter(tonumber(ARGV[3]), ttl) end
write_owner(id, ARGV[3], now() - tonumber(ARGV[4]), ARGV[5], ARGV[6], ttl)
return {'healed'}
