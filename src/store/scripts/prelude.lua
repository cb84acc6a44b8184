-- Put in front of every script. Together they are the definition of the lock.
--
-- KEYS[1]  the lock: a plain string key, its value the token of the lease, with an expiry
-- KEYS[2]  fence counter: a string, the largest fence this server knows of
-- KEYS[3]  owner record: a hash {lease, fence, since, supervised, record}; belongs to the lease it names, else it is stale
-- KEYS[4]  tombstones: a sorted set, ids of leases released by hand, scored with the time when they may be forgotten
--
-- A lease is named in public by its id, the SHA-1 of its token.
local LOCK, FENCE, OWNER, RELEASED = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

local MAX_FENCE = 4503599627370496 -- 2^52: beyond it a Lua number does not hold every integer
local FENCE_IDLE = 2592000000      -- 30 days in ms: how long the counter outlives the last lease
local CLOCK_TRUST = 10000          -- ms by which a client's wall clock may raise the fence above ours

-- This server's wall clock in ms.
local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function is_error(reply)
  return type(reply) == 'table' and reply.err ~= nil
end

-- The first reply that is an error, or nil.
local function first_error(...)
  for i = 1, select('#', ...) do
    local reply = select(i, ...)
    if is_error(reply) then return reply end
  end
end

-- What lies under the lock: false when it is free; its value; or, with the type's name as second result, true for a key
-- that is no string. An error that is not about the type (missing rights) comes back as the error itself.
local function look()
  local value = redis.pcall('GET', LOCK)
  if is_error(value) and string.find(value.err, 'WRONGTYPE', 1, true) then
    return true, redis.call('TYPE', LOCK).ok
  end
  return value
end

-- The reply that names who holds the lock: {word, id, type, ms left or -1, ours, fence, age in ms or -1, supervised, record}.
local function describe(word, value, type_name)
  local id = type_name and 'type:' .. type_name or redis.sha1hex(value)
  local left = redis.call('PTTL', LOCK)
  local owner = redis.pcall('HMGET', OWNER, 'lease', 'fence', 'since', 'supervised', 'record')
  if is_error(owner) or owner[1] ~= id then
    return {word, id, type_name or 'string', left, 0, '', -1, 0, ''}
  end
  local age = math.max(0, now() - (tonumber(owner[3]) or 0))
  return {word, id, 'string', left, 1, owner[2] or '', age, tonumber(owner[4]) or 0, owner[5] or ''}
end

-- The reply to somebody whose token is not under the lock: {'gone', 1} when it was released by hand, whoever came after; else who holds it,
-- or {'gone', 0}.
local function not_ours(token, value, type_name)
  if type(redis.pcall('ZSCORE', RELEASED, redis.sha1hex(token))) == 'string' then return {'gone', 1} end
  if value then return describe('held', value, type_name) end
  return {'gone', 0}
end

-- The fence counter, 0 when there is none; or nil and the error to return.
local function counter()
  local stored = redis.pcall('GET', FENCE)
  if is_error(stored) and not string.find(stored.err, 'WRONGTYPE', 1, true) then return nil, stored end
  if not stored then return 0 end
  local number = type(stored) == 'string' and tonumber(stored)
  if number and number >= 0 and number < MAX_FENCE and number == math.floor(number) then return number end
  return nil, redis.error_reply('FENCE the fence counter is not a number below 2^52')
end

local function decimal(number)
  return string.format('%.0f', number)
end

-- Keeps the counter for as long as anybody may need to be outnumbered.
local function set_counter(fence, ttl)
  return redis.pcall('SET', FENCE, decimal(fence), 'PX', decimal(FENCE_IDLE + ttl))
end

local function write_owner(id, fence, since, supervised, record, ttl)
  return first_error(
    redis.pcall('DEL', OWNER),
    redis.pcall('HSET', OWNER, 'lease', id, 'fence', fence, 'since', decimal(since), 'supervised', supervised, 'record', record),
    redis.pcall('PEXPIRE', OWNER, ttl))
end
