-- The first part of the text. tombstones.lua, runs.lua, shares.lua, lock.lua, queue.lua and
-- departures.lua follow; together they define the lock. Creating all their functions takes a server
-- longer than most scripts take to run. So each script comes right after the functions that it uses
-- (src/CMakeLists.txt), and the usual cases of acquire and release come before most of them.
-- KEYS.…, ARGV.…, REPLY.…, LINE.…, WORD.…, NUMBER.… and TIME.… are not tables: the build replaces
-- each name by its value (core/protocol.txt). It does so with constants, too: names in capitals for
-- a number or a string. So none of them is one of the 200 locals that Lua knows at a time.
-- KEYS.lock      the lock: a plain string key with an expiry; its value is the token of the lease,
--                or SHARED while it is shared
-- KEYS.fence     fence counter: a string, the largest fence that this server knows of
-- KEYS.owner     owner record: a hash, see read_owner()
-- KEYS.released  tombstones: a sorted set, see tombstones.lua
-- KEYS.readers   readers: a sorted set, ids of the shares of a shared lock, scored with the time
--                when they end; a lease that takes several slots has a share for each, see
--                part_id()
-- KEYS.shares    shares: a hash, a reader's id -> the data of its share, see shares.lua; and the
--                users of shares, see users.lua
-- KEYS.slots     slots: a hash, a slot's number or name -> the id of the reader in it; the slot is
--                free when that id is no longer a reader
-- KEYS.queue     queue: a sorted set, ids of waiters, scored with their classes and tickets, see
--                score_of()
-- KEYS.waiters   waiters: a hash, a waiter's id -> its entry, see queue.lua
-- KEYS.last      the last runs: a string, see runs.lua; only for a client that needs them
-- While a cluster moves the keys to another server, acquire, extend, release, inspect, ask and
-- break_lock get only the keys on the server that has KEYS.lock, see forget_absent() in lock.lua;
-- undo gets KEYS.lock alone, end_sign and keep_record get another key alone (D1).
-- The public name of a lease is its id, the SHA-1 of its token. All shares of a lock together are
-- named 'shared'.
-- Times and durations are in ms; times are this server's.
local SHARED = WORD.shared_marker
local MAX_FENCE = NUMBER.max_fence
local FENCE_IDLE = 2592000000 -- 30 days: how long the counter outlives the last lease

local function now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local decimal
do
  -- Caches the last result, as a script writes the same time in several places.
  local last_number, last_text
  function decimal(number)
    if number ~= last_number then last_number, last_text = number, string.format('%.0f', number) end
    return last_text
  end
end

local function is_error(reply)
  return type(reply) == 'table' and reply.err ~= nil
end

local function is_wrong_type(reply)
  return is_error(reply) and string.find(reply.err, 'WRONGTYPE', 1, true) ~= nil
end

-- The error of a script that needs a key which is on another server (D1).
local function elsewhere()
  return redis.error_reply('TRYAGAIN the rest of the lock is elsewhere')
end

-- The first reply that is an error, or nil.
local function first_error(...)
  for i = 1, select('#', ...) do
    local reply = select(i, ...)
    if is_error(reply) then return reply end
  end
end

-- Sets the lock, which seemed to be free. -> an error if it was not
local function set_lock(value, ttl)
  return redis.pcall('SET', KEYS.lock, value, 'NX', 'PX', ttl)
    or redis.error_reply('ERR the lock seemed to be free and could not be set')
end

-- The fence counter, 0 if there is none; or nil and the error to return, also for a counter that is
-- not below `limit`.
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

-- Sets the counter, which stays for as long as a new fence might have to exceed it.
local function set_counter(fence, ttl)
  return redis.pcall('SET', KEYS.fence, decimal(fence), 'PX', FENCE_IDLE + ttl)
end

-- Raises the counter to a new fence. -> the fence, or nil and an error
local function next_fence(time, ttl)
  local last, unusable = counter(MAX_FENCE - 1)
  if not last then return nil, unusable end
  -- With the server's clock, fences grow even if all data was lost. Clients' clocks differ too much
  -- for that.
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

-- The owner record: the id of its lease (if another lease holds the lock, the record is stale), the
-- lease's fence, the time when it was acquired, supervised (0 or 1: a `run` keeps it), a record to
-- show, mute (0 or 1: it cannot publish), the users of the lease, see users.lua, and the longest
-- ttl that was requested for the lease, see max_life(). In a shared lock, the lease is
-- WORD.all_shares, `since` is when it became shared, and the other fields are from the reader that
-- came last. Fields that are absent or cannot be read are false or nil. -> the record, and an error
-- if it cannot be read
local function read_owner()
  local stored =
    redis.pcall('HMGET', KEYS.owner, 'lease', 'fence', 'since', 'supervised', 'record', 'mute',
      WORD.users_field, 'ttl')
  return {
    lease = stored[1], fence = stored[2], since = stored[3], supervised = stored[4],
    record = stored[5], cannot_publish = stored[6] == '1', users = stored[7],
    max_ttl = stored[8]
  }, first_error(stored)
end

-- A holder without the right to publish notifies no waiter when it releases, so waiters must know
-- of that beforehand. One such holder of several is enough. -> an error or nil, and whether it, or
-- one of the others, cannot publish
local function write_owner(id, fence, since, supervised, record, ttl, others_cannot)
  local cannot_publish = others_cannot or is_error(publish('', WORD.recheck))
  local fields = {
    'lease', id, 'fence', fence, 'since', decimal(since), 'supervised', supervised,
    'record', record, 'mute', cannot_publish and '1' or '0', 'ttl', decimal(ttl)
  }
  local written = redis.pcall('HSET', KEYS.owner, unpack(fields))
  if written ~= #fields / 2 then
    -- There was an old record, possibly with other fields, or a key of another type.
    redis.pcall('DEL', KEYS.owner)
    written = redis.pcall('HSET', KEYS.owner, unpack(fields))
  end
  return first_error(written, redis.pcall('PEXPIRE', KEYS.owner, ttl)), cannot_publish
end

-- REPLY.queue for an empty queue. The caller overwrites the fields that differ.
local function queue_reply(time, cannot_publish)
  return {decimal(time), '', 0, 0, -1, '', 0, cannot_publish and 1 or 0, '', '', -1, '', ''}
end

-- Grants an exclusive lease of a lock that is free. On failure, the lock is free again.
-- -> its fence, nil, and whether the holder cannot publish; or nil and an error
local function grant_exclusive(token, id, ttl, supervised, record, time)
  local set = set_lock(token, ttl)
  if is_error(set) then return nil, set end
  local fence, failure = next_fence(time, ttl)
  local cannot_publish
  if fence then failure, cannot_publish = write_owner(id, fence, time, supervised, record, ttl) end
  if failure then
    redis.pcall('DEL', KEYS.lock)
    return nil, failure
  end
  return fence, nil, cannot_publish
end
