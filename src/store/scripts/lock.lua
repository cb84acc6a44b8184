-- Follows shares.lua: what a server knows of the lock and of its leases, and what changes it.

-- While a cluster moves the keys, a script gets those that are here: KEYS.lock stands for each of
-- the others, and once more behind them all (D1). Forgets the others. -> whether it is so
local function forget_absent()
  if not KEYS[NUMBER.partial] then return false end
  for i = 2, NUMBER.partial do
    if KEYS[i] == KEYS.lock then KEYS[i] = nil end
  end
  -- Only the three together make a queue.
  if not KEYS.waiters or not KEYS.fence then KEYS.queue = nil end
  return true
end

-- The lock's value, or the beginning of a long one, which a foreign client may use as data: to read
-- all of it would take the server long. '' also when there is no key. Or an error.
local function lock_value()
  local value = redis.pcall('GETRANGE', KEYS.lock, 0, NUMBER.last_byte)
  -- A user may have the right to GET alone. Any other error is the same again.
  if is_error(value) then value = redis.pcall('GET', KEYS.lock) or '' end
  return value
end

-- What PTTL says of the lock, once read_lock() has asked and nothing is written to the lock
-- afterwards.
local seen_remaining

-- Reads the lock key: false when it does not exist; its value; or, with the type's name as second
-- result, true for a key that is not a string. Any error other than a wrong type (such as missing
-- rights) is returned as it is.
local function read_lock()
  seen_remaining = redis.pcall('PTTL', KEYS.lock)
  if is_error(seen_remaining) then return seen_remaining end
  if seen_remaining == -2 then return false end
  local value = lock_value()
  if is_wrong_type(value) then return true, redis.call('TYPE', KEYS.lock).ok end
  return value
end

-- The state of the lock: 'free'; 'shared', SHARED; 'held' with the results of read_lock(); or nil
-- and the error. Without shares the lock is shared while the marker lives. Shares without their
-- marker hold it, and let no reader in that would make the marker anew: the lock was deleted, and
-- their holders are to notice (M1). So losing one of the two keys does not lose both: without its
-- shares the marker keeps writers out until it ends, or with the next reader, whose share then
-- bounds it.
local function lock_state(time)
  local value, type_name = read_lock()
  if is_error(value) then return nil, value end
  if value and value ~= SHARED then return 'held', value, type_name end
  if not KEYS.readers then return nil, redis.error_reply(ELSEWHERE) end
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

-- REPLY.holder. `known`: what is known of the lease, an owner record or a share.
local function holder_reply(word, id, type_name, remaining, is_ours, age, known)
  return {
    word, id, type_name, remaining, is_ours and 1 or 0, known.fence or '', age,
    tonumber(known.supervised) or 0, known.record or ''
  }
end

-- The reply that names the holder; -1: it lasts for ever, or its age is not known. For a shared
-- lock the age is the time since it became shared; the rest is the latest reader's. Not that of the
-- owner record: it names the last one to come, also when that one has ended, and an older version
-- that releases it would not change that.
local function describe(word, value, type_name, time)
  local shared = value == SHARED
  local id = type_name and 'type:' .. type_name or shared and WORD.all_shares
    or redis.sha1hex(value)
  local owner, unread = read_owner()
  local is_known = owner.lease == id
  local age = is_known and math.max(0, time - (tonumber(owner.since) or 0)) or -1
  local known = is_known and owner
  if shared then known = latest_share(time) end
  local reply = holder_reply(
    word, id, type_name or 'string', remaining_ms(time), shared or is_known, age, known or {})
  return reply, unread
end

-- The same for one share, with its slot at the end; and the error if its entry cannot be read.
local function describe_share(word, id, ends, time)
  local stored = redis.error_reply(ELSEWHERE)
  if KEYS.shares then stored = redis.pcall('HGET', KEYS.shares, id) end
  local share = read_share(stored) or {}
  local age = share.since and math.max(0, time - share.since) or -1
  local reply = holder_reply(word, id, 'string', ends - time, true, age, share)
  reply[REPLY.holder.behind] = share.slot or -1
  return reply, first_error(stored)
end

-- Tombstones, for processes that keep a lease that is here no more: the id of one released by hand;
-- BROKEN and the id of one broken by force, and with the same score BREAKER and the owner record of
-- the process that broke it. The score is when they may be forgotten.
local BROKEN, BREAKER = 'broken:', '!'

-- Whether the lease was released by hand or broken by force. An error ends the script: what was
-- must not come back (R11).
local function has_tombstone(id)
  return redis.call('ZSCORE', KEYS.released, id)
    or redis.call('ZSCORE', KEYS.released, BROKEN .. id)
end

-- The owner record of the process that broke this lease by force ('': the record is unreadable), or
-- nil.
local function breaker_of(id)
  local ends = redis.pcall('ZSCORE', KEYS.released, BROKEN .. id)
  if type(ends) ~= 'string' then return nil end
  local first = redis.pcall('ZRANGEBYSCORE', KEYS.released, ends, ends, 'LIMIT', 0, 1)[1] or ''
  return string.sub(first, 1, #BREAKER) == BREAKER and string.sub(first, #BREAKER + 1) or ''
end

-- Leaves tombstones for as long as the leases would have lasted, so that a process that keeps one
-- learns what became of it (R9). `breaker`: the owner record of the process that broke them; nil:
-- they were released. Another client may have removed the lock's expiry; then the record's expiry
-- counts. So this must run before the record is deleted.
local function leave_tombstones(ids, breaker, remaining, time)
  local life = remaining > 0 and remaining or KEYS.owner and redis.call('PTTL', KEYS.owner) or 0
  if life <= 0 then life = TIME.idle_life end
  redis.pcall('ZREMRANGEBYSCORE', KEYS.released, '-inf', decimal(time))
  local function leave(member)
    redis.pcall('ZADD', KEYS.released, decimal(time + life), member)
  end
  if breaker then leave(BREAKER .. breaker) end
  for _, id in ipairs(ids) do leave(breaker and BROKEN .. id or id) end
  local kept = redis.pcall('PTTL', KEYS.released)
  if type(kept) == 'number' and kept < life then
    redis.pcall('PEXPIRE', KEYS.released, decimal(life))
  end
end

-- The reply when the caller's lease is not here: {'gone', 1} when it was released by hand, whatever
-- lease came after; otherwise the holder, or {'gone', 0}. When it was broken by force, the breaker
-- is at the end: {'held', …, breaker} or {'gone', 2, breaker}.
local function not_ours(id, time, value, type_name)
  if type(redis.pcall('ZSCORE', KEYS.released, id)) == 'string' then
    return {WORD.gone, NUMBER.gone_released}
  end
  local breaker = breaker_of(id)
  if value and value ~= SHARED then
    local reply = describe(WORD.held, value, type_name, time)
    reply[REPLY.holder.behind] = breaker
    return reply
  end
  if breaker then return {WORD.gone, NUMBER.gone_broken, breaker} end
  return {WORD.gone, NUMBER.gone_unknown}
end

-- 'exclusive', or 'shared', when the share ends and whether the marker is there, too, if the lease
-- of this token is here; otherwise nil and the reply to its holder.
local function own_lease(token, time)
  local value, type_name = lock_value(), nil
  if value == token then return 'exclusive' end
  if value ~= SHARED then value, type_name = read_lock() end
  if is_error(value) then return nil, value end
  local id = redis.sha1hex(token)
  if value == SHARED and not KEYS.readers then
    return nil, redis.error_reply(ELSEWHERE)
  end
  if not value or value == SHARED then
    local ends = KEYS.readers and share_end(id, time)
    if ends then return 'shared', ends, value == SHARED end
  end
  return nil, not_ours(id, time, value, type_name)
end

-- Raises the fence counter to our lease's fence, and writes that fence to the records. -> an error
-- or nil
local function lift_fence(how, id, fence, ttl)
  local last, unusable = counter(MAX_FENCE)
  if not last then return unusable end
  local lifted = last < tonumber(fence) and set_counter(tonumber(fence), ttl)
  if is_error(lifted) then return lifted end
  local owner = read_owner()
  if how == 'exclusive' then
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
  return first_error(
    write_share(id, share),
    -- To an older version the owner record shows the fence of the last reader to come, the largest.
    owner.lease == WORD.all_shares and (tonumber(owner.fence) or 0) < tonumber(fence)
      and redis.pcall('HSET', KEYS.owner, 'fence', fence))
end

-- A server that is out of memory lets a script write once its first write was one that needs no
-- memory. This one changes nothing.
local function write_without_memory()
  if KEYS.readers then redis.pcall('ZREM', KEYS.readers, '') end
end
