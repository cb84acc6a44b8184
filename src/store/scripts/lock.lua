-- Follows shares.lua: the lock and its leases on this server, and functions that change them.

-- While a cluster moves the slot, a script gets only the keys that are on this server. KEYS.lock
-- replaces each absent key, and is also appended to the list (D1). Sets absent keys to nil.
-- -> whether any key may be absent
local function forget_absent()
  if not KEYS[NUMBER.partial] then return false end
  for i = 2, NUMBER.partial do
    if KEYS[i] == KEYS.lock then KEYS[i] = nil end
  end
  -- A queue needs all three keys.
  if not KEYS.waiters or not KEYS.fence then KEYS.queue = nil end
  return true
end

-- The lock's value; of a long value only the beginning, as a foreign client may use the key for
-- data that would take the server long to read. '' if there is no key. Or an error.
local function lock_value()
  local value = redis.pcall('GETRANGE', KEYS.lock, 0, NUMBER.last_byte)
  -- The user may only have the right to GET. Any other error occurs again.
  if is_error(value) then value = redis.pcall('GET', KEYS.lock) or '' end
  return value
end

-- The lock's PTTL as read by read_lock(). Only valid while the lock has not been written since.
local seen_remaining

-- Reads the lock key. -> false if it does not exist; its value; or true and the type's name, for a
-- key that is not a string. Errors other than a wrong type (such as missing rights) are returned.
local function read_lock()
  seen_remaining = redis.pcall('PTTL', KEYS.lock)
  if is_error(seen_remaining) then return seen_remaining end
  if seen_remaining == -2 then return false end
  local value = lock_value()
  if is_wrong_type(value) then return true, redis.call('TYPE', KEYS.lock).ok end
  return value
end

-- The state of the lock: 'free'; 'shared' and SHARED; 'held' and the results of read_lock(); or nil
-- and the error.
--
-- A marker without shares still makes the lock shared: it keeps writers out until it expires; the
-- next reader limits its life to that of the reader's share. Shares without a marker hold the lock
-- and admit no further reader, who would restore the marker: another client deleted the lock, and
-- the holders of the shares must notice that (M1). So the loss of one key is not the loss of the
-- lock.
local function lock_state(time)
  local value, type_name = read_lock()
  if is_error(value) then return nil, value end
  if value and value ~= SHARED then return 'held', value, type_name end
  if not KEYS.readers then return nil, elsewhere() end
  local shares = count_readers(time)
  if is_error(shares) then return nil, shares end
  if value then return 'shared', SHARED end
  if shares > 0 then return 'held', SHARED end
  return 'free', false
end

-- ms until the lock ends, -1 for never: the marker's expiry, or without a marker the last share's.
local function remaining_ms(time)
  local marker = seen_remaining or redis.call('PTTL', KEYS.lock)
  if marker ~= -2 then return marker end
  local last = last_share_end()
  return last and math.max(0, last - time) or -1
end

-- REPLY.holder. `known`: the lease's data, from an owner record or a share.
local function holder_reply(word, id, type_name, remaining, is_ours, age, known)
  return {
    word, id, type_name, remaining, is_ours and 1 or 0, known.fence or '', age,
    tonumber(known.supervised) or 0, known.record or ''
  }
end

-- The reply that describes the holder; -1: it never expires, or its age is unknown. The age of a
-- shared lock is the time since it became shared; the other data is that of the latest reader. The
-- owner record does not serve for this: it has the reader that came last, even if that one has
-- released its share. -> the reply, an error if the record cannot be read, and the ids of the
-- shares whose slots are on hold
local function describe(word, value, type_name, time)
  local shared = value == SHARED
  local id = type_name and 'type:' .. type_name or shared and WORD.all_shares
    or redis.sha1hex(value)
  local owner, unread = read_owner()
  local is_known = owner.lease == id
  local since = is_known and tonumber(owner.since)
  local age = since and math.max(0, time - since) or -1
  local known, holds = is_known and owner, {}
  if shared then known, holds = latest_share(time) end
  local reply = holder_reply(
    word, id, type_name or 'string', remaining_ms(time), shared or is_known, age, known or {})
  return reply, unread, holds
end

-- Like describe(), for one share, with its slot at the end; and an error if the entry cannot be
-- read.
local function describe_share(word, id, ends, time)
  local stored = elsewhere()
  if KEYS.shares then stored = redis.pcall('HGET', KEYS.shares, id) end
  local share = read_share(stored) or {}
  local age = share.since and math.max(0, time - share.since) or -1
  local reply = holder_reply(word, id, 'string', ends - time, true, age, share)
  reply[REPLY.holder.extra] = share.slot or NO_SLOT
  return reply, first_error(stored)
end

-- A hold is a lease that no process needs, exclusive or in one slot, with a mark in its record
-- (F1). Its end does not depend on its users. `lease`: an owner record, or a share. -> that end, or
-- nil if it is not a hold
local HOLD = '"' .. WORD.hold_field .. '":(%d+)'
local function hold_end(lease)
  local length = string.match(lease.record or '', HOLD)
  return length and tonumber(lease.since) and tonumber(lease.since) + tonumber(length)
end

-- The record of a hold that lasts for this long from its grant, or that is lifted (nil).
local function with_length(record, length)
  local field = length and WORD.hold_field or WORD.lifted_field
  local value = length and decimal(length) or '%1'
  return (string.gsub(record, HOLD, '"' .. field .. '":' .. value, 1))
end

-- Adds the value of the lock to the reply about a hold; for slots on hold their shares, whose
-- records have the tokens. Every client that may lock may also restore or lift the hold (F2, F3).
-- `holds`: the ids that describe() found
local function with_value(reply, value, holds, time)
  if not holds[1] and (value == SHARED or not string.match(reply[REPLY.holder.record], HOLD)) then
    return reply
  end
  reply[REPLY.holder.ended] = reply[REPLY.holder.ended] or 0
  reply[REPLY.holder.value] = value == SHARED and '' or value
  local shares = {}
  for _, id in ipairs(holds) do
    local ends = share_end(id, time)
    if ends then shares[#shares + 1] = describe_share('share', id, ends, time) end
  end
  reply[REPLY.holder.holds] = shares
  return reply
end

-- The reply if the caller's lease is not here: {'gone', 1} if it was released by hand, even if
-- there is a later lease; otherwise the holder, or {'gone', 0}. If it was broken by force, the
-- reply ends with the breaker: {'held', …, breaker} or {'gone', 2, breaker}. For a user of the
-- lease (`is_user`) it does not end with the keeper's release.
local function not_ours(id, time, value, type_name, is_user)
  if not is_user and type(redis.pcall('ZSCORE', KEYS.released, id)) == 'string' then
    return {WORD.gone, NUMBER.gone_released}
  end
  local breaker = breaker_of(id)
  if value and value ~= SHARED then
    local reply = describe(WORD.held, value, type_name, time)
    reply[REPLY.holder.extra] = breaker
    return reply
  end
  if breaker then return {WORD.gone, NUMBER.gone_broken, breaker} end
  return {WORD.gone, NUMBER.gone_unknown}
end

-- The lease of this token. -> 'exclusive'; or 'shared', the end of the share, and whether there is
-- a marker; or nil and the reply to its holder, if the lease is not here
local function own_lease(token, time, is_user)
  local value, type_name = lock_value(), nil
  if value == token then return 'exclusive' end
  if value ~= SHARED then value, type_name = read_lock() end
  if is_error(value) then return nil, value end
  local id = redis.sha1hex(token)
  if value == SHARED and not KEYS.readers then
    return nil, elsewhere()
  end
  if not value or value == SHARED then
    local ends = KEYS.readers and share_end(id, time)
    if ends then return 'shared', ends, value == SHARED end
  end
  return nil, not_ours(id, time, value, type_name, is_user)
end

-- Raises the fence counter to our lease's fence, and writes this fence to the lease's records.
-- -> an error or nil
local function lift_fence(how, id, fence, ttl)
  local last, unusable = counter(MAX_FENCE)
  if not last then return unusable end
  local lifted = last < tonumber(fence) and set_counter(tonumber(fence), ttl)
  if is_error(lifted) then return lifted end
  if how == 'exclusive' then
    local owner = read_owner()
    if owner.lease ~= id or owner.fence == fence then return end
    return first_error(redis.pcall('HSET', KEYS.owner, 'fence', fence))
  end
  local share = read_share(redis.pcall('HGET', KEYS.shares, id))
  if not share or share.fence == fence then return end
  share.fence = fence
  local parts = parts_of(id, share)
  for nth = 2, #parts do
    local other = read_share(redis.pcall('HGET', KEYS.shares, parts[nth]))
    if other then
      other.fence = fence
      write_share(parts[nth], other)
    end
  end
  return first_error(write_share(id, share))
end

-- The error of a server that takes no writes, or nil: a replica, whose data may be old, must not
-- say that a lease is gone or that the lock is another's (D4). A missing right says nothing about
-- that.
--
-- Tries a write without effect. As it needs no memory, a server that is out of memory allows all
-- writes of the script after it.
local function refusal_of_writes()
  local reply = redis.pcall('ZREMRANGEBYSCORE', KEYS.readers or KEYS.lock, 1, 0)
  if not is_error(reply) then return end
  for _, word in ipairs({'READONLY', 'MISCONF', 'NOREPLICAS'}) do
    if string.find(reply.err, word, 1, true) then return reply end
  end
end
