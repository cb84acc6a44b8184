-- Lifts the fence counter to the lease's fence, if the lease is here (R6: written back before the lease counts as granted).
-- ARGV: token, fence, ttl
-- -> {'raised'} | {'gone', …} | {'held', …} | an error
local time = now()
local how, reply = mine(ARGV[1], time)
if not how then return reply end

local last, unusable = counter()
if not last then return unusable end
if last >= tonumber(ARGV[2]) then return {'raised'} end
local failure = set_counter(tonumber(ARGV[2]), tonumber(ARGV[3]))
if is_error(failure) then return failure end
if how == 'exclusive' then
  failure = first_error(
    redis.pcall('HSET', OWNER, 'fence', ARGV[2]),
    redis.pcall('PEXPIRE', OWNER, ARGV[3])) -- the record may have been lost, and HSET makes one without an end
else
  local id = redis.sha1hex(ARGV[1])
  local stored = redis.pcall('HGET', SHARES, id)
  if type(stored) == 'string' then
    failure = first_error(redis.pcall('HSET', SHARES, id, (string.gsub(stored, '^%d+', ARGV[2]))))
    -- The state shows the latest reader's, which is the largest.
    if not failure and redis.pcall('HGET', OWNER, 'lease') == 'shared' then
      failure = first_error(redis.pcall('HSET', OWNER, 'fence', ARGV[2]))
    end
  end
end
return failure or {'raised'}
