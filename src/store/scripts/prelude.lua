-- Comes first. runs.lua, shares.lua, lock.lua and queue.lua follow; together they define the lock.
-- Making all their functions takes a server longer than most scripts take to run. So each script
-- stands right behind what it uses (src/CMakeLists.txt), and the usual case of acquire and release
-- before most of it.
-- KEYS.…, ARGV.…, REPLY.…, LINE.…, WORD.…, NUMBER.… and TIME.… are not tables: the build replaces
-- each by what it stands for (core/protocol.txt).
-- KEYS.lock      the lock: a plain string key with an expiry; its value is the token of the lease,
--                or SHARED while it is shared
-- KEYS.fence     fence counter: a string, the largest fence that this server knows of
-- KEYS.owner     owner record: a hash, see read_owner()
-- KEYS.released  tombstones: a sorted set, see lock.lua
-- KEYS.readers   readers: a sorted set, ids of the shares of a shared lock, scored with the time
--                when they end; a lease that takes several slots has a share for each, see part_id()
-- KEYS.shares    shares: a hash, a reader's id -> what is known of its share, see shares.lua
-- KEYS.slots     slots: a hash, a slot number -> the id of the reader in it; the slot is free when
--                that id is no longer a reader
-- KEYS.queue     queue: a sorted set, ids of waiters, scored with their tickets
-- KEYS.waiters   waiters: a hash, a waiter's id -> its entry, see queue.lua
-- KEYS.last      the last runs: a string, see runs.lua; only for a client that wants them
-- While a cluster moves the keys to another server, acquire, extend, release and inspect get those
-- that are where KEYS.lock is, see forget_absent() in lock.lua; undo gets KEYS.lock alone (D1).
-- The public name of a lease is its id, the SHA-1 of its token. All shares of a lock together are
-- named 'shared'.
-- Times and durations are in ms; times are this server's.
local SHARED = WORD.shared_marker
local MAX_FENCE = NUMBER.max_fence
local FENCE_IDLE = 2592000000 -- 30 days: how long the counter outlives the last lease
local NOT_SET = 'ERR the lock seemed to be free and could not be set'
local ELSEWHERE = 'TRYAGAIN the rest of the lock is elsewhere'

local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Remembers the last result: a script writes the same time in several places.
local last_number, last_text
local function decimal(number)
  if number ~= last_number then last_number, last_text = number, string.format('%.0f', number) end
  return last_text
end

local function is_error(reply)
  return type(reply) == 'table' and reply.err ~= nil
end

local function is_wrong_type(reply)
  return is_error(reply) and string.find(reply.err, 'WRONGTYPE', 1, true) ~= nil
end

-- The first reply that is an error, or nil.
local function first_error(...)
  for i = 1, select('#', ...) do
    local reply = select(i, ...)
    if is_error(reply) then return reply end
  end
end

-- The fence counter, 0 when there is none; or nil and the error to return, also when it is not
-- below `limit`.
local function counter(limit)
  local stored = redis.pcall('GET', KEYS.fence)
  if is_error(stored) and not is_wrong_type(stored) then return nil, stored end
  if not stored then return 0 end
  local number = type(stored) == 'string' and tonumber(stored)
  if number and number >= 0 and number < limit and number == math.floor(number) then
    return number
  end
  return nil, redis.error_reply(
    WORD.fence_error .. ' the fence counter cannot be used: no number or too large')
end

-- Keeps the counter for as long as any lease may still need a larger fence than an old one.
local function set_counter(fence, ttl)
  return redis.pcall('SET', KEYS.fence, decimal(fence), 'PX', FENCE_IDLE + ttl)
end

-- Raises the counter to a new fence. -> the fence, or nil and an error
local function next_fence(time, ttl)
  local last, unusable = counter(MAX_FENCE - 1)
  if not last then return nil, unusable end
  -- The server's clock makes fences grow even after all data was lost. Clients' clocks differ too
  -- much for that.
  local fence = math.max(last + 1, time)
  local set = set_counter(fence, ttl)
  if is_error(set) then return nil, set end
  return decimal(fence)
end

-- The channel of a waiter. Its name has the same tail as the helper keys.
local function channel_of(id)
  return WORD.wake_prefix .. id .. ':' .. string.match(KEYS.fence, '{.*')
end

local function publish(id, word)
  return redis.pcall('PUBLISH', channel_of(id), word)
end

-- The owner record: the id of the lease that it belongs to (if that is another, the record is
-- stale), the lease's fence, since when it is held, supervised (0 or 1: a `run` keeps it), a record
-- for people, and mute (0 or 1). Of a shared lock the lease is WORD.all_shares, `since` is when it
-- became shared, and the reader that came last wrote the rest. What is not there, or cannot be
-- read, is false or nil. -> the record, and the error if it cannot be read
local function read_owner()
  local stored =
    redis.pcall('HMGET', KEYS.owner, 'lease', 'fence', 'since', 'supervised', 'record', 'mute')
  return {
    lease = stored[1], fence = stored[2], since = stored[3], supervised = stored[4],
    record = stored[5], is_mute = stored[6] == '1'
  }, first_error(stored)
end

-- A holder that may not publish is mute: it notifies no waiter when it releases, so waiters must
-- know beforehand. One mute holder of several is enough. -> an error or nil, and whether it is mute
local function write_owner(id, fence, since, supervised, record, ttl, others_are_mute)
  local is_mute = others_are_mute or is_error(publish('', WORD.recheck))
  local fields = {
    'lease', id, 'fence', fence, 'since', decimal(since), 'supervised', supervised,
    'record', record, 'mute', is_mute and '1' or '0'
  }
  local written = redis.pcall('HSET', KEYS.owner, unpack(fields))
  if written ~= #fields / 2 then
    -- Something was there, maybe with other fields, or no hash at all.
    redis.pcall('DEL', KEYS.owner)
    written = redis.pcall('HSET', KEYS.owner, unpack(fields))
  end
  return first_error(written, redis.pcall('PEXPIRE', KEYS.owner, ttl)), is_mute
end

-- REPLY.queue for a queue without waiters. The caller replaces what differs.
local function queue_reply(time, is_mute)
  return {decimal(time), '', 0, 0, -1, '', 0, is_mute and 1 or 0, '', '', -1, ''}
end

-- Grants an exclusive lease of a lock that is free. A failure leaves nothing behind.
-- -> its fence, nil, and whether the holder is mute; or nil and an error
local function grant_exclusive(token, id, ttl, supervised, record, time)
  local set = redis.pcall('SET', KEYS.lock, token, 'NX', 'PX', ttl) or redis.error_reply(NOT_SET)
  if is_error(set) then return nil, set end
  local fence, failure = next_fence(time, ttl)
  local is_mute
  if fence then failure, is_mute = write_owner(id, fence, time, supervised, record, ttl) end
  if failure then
    redis.pcall('DEL', KEYS.lock)
    return nil, failure
  end
  return fence, nil, is_mute
end
