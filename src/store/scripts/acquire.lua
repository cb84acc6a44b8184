-- Takes the lock if it is free.
-- ARGV: token, ttl in ms, the client's wall clock in ms, supervised (0 or 1), owner record
-- -> {'granted', fence, id} | {'held', …} | {'duplicate'} when the key already holds this very token | an error
local token, ttl = ARGV[1], tonumber(ARGV[2])

local set = redis.pcall('SET', LOCK, token, 'NX', 'PX', ARGV[2])
if is_error(set) then return set end
if not set then
  local value, type_name = look()
  if is_error(value) then return value end
  if value == token then return {'duplicate'} end
  return describe('held', value, type_name)
end

-- From here on a failure must not leave the lock behind.
local function give_up(failure)
  redis.pcall('DEL', LOCK)
  return failure
end

local last, unusable = counter()
if not last then return give_up(unusable) end

-- The floor makes fences grow even after all data was lost; the clamp keeps a client's wrong clock from running away with it.
local time = now()
local floor = math.min(math.max(tonumber(ARGV[3]), time - CLOCK_TRUST), time + CLOCK_TRUST)
local fence = math.max(last + 1, floor)
local id = redis.sha1hex(token)

local failure = first_error(set_counter(fence, ttl), write_owner(id, decimal(fence), time, ARGV[4], ARGV[5], ttl))
if failure then return give_up(failure) end
return {'granted', decimal(fence), id}
