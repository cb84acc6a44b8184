-- Follows runs.lua: what a server knows of the lock and of its leases, and what changes it.
local ELSEWHERE = 'TRYAGAIN the rest of the lock is elsewhere'

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
  if is_error(value) and string.find(value.err, 'WRONGTYPE', 1, true) then
    return true, redis.call('TYPE', KEYS.lock).ok
  end
  return value
end

-- When the share ends, if it has not ended. An error ends the script: it must not look like a share
-- that has ended (R11).
local function share_end(id, time)
  local ends = tonumber(redis.call('ZSCORE', KEYS.readers, id))
  if ends and ends > time then return ends end
end

-- How many readers share the lock, or an error.
local function count_readers(time)
  return redis.pcall('ZCOUNT', KEYS.readers, '(' .. decimal(time), '+inf')
end

-- When the last share ends or ended, or nil.
local function last_share_end()
  return tonumber(redis.call('ZRANGE', KEYS.readers, -1, -1, 'WITHSCORES')[2])
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

-- A share in KEYS.shares: 'fence since supervised slot record', slot -1: none. The last capture is
-- where the record begins. Of a thousand shares most are read for their fence alone.
local SHARE = '^(%d+) (%d+) (%d) (%-?%d+) ()'

-- The share that is stored so: its numbers, and its record; or nil where it cannot be read.
local function read_share(stored)
  if type(stored) ~= 'string' then return nil end
  local fence, since, supervised, slot, record_at = string.match(stored, SHARE)
  if not fence then return nil end
  return {
    fence = fence, since = tonumber(since), supervised = tonumber(supervised),
    slot = tonumber(slot), record = string.sub(stored, record_at)
  }
end

local function write_share(id, share)
  return redis.pcall('HSET', KEYS.shares, id, table.concat({
    share.fence, decimal(share.since), share.supervised, share.slot, share.record
  }, ' '))
end

-- The ids of the living readers, by their ends, or an error. Of very many only those that end
-- first: a reply must not take the server long.
local function living_readers(time)
  return redis.pcall(
    'ZRANGEBYSCORE', KEYS.readers, '(' .. decimal(time), '+inf', 'LIMIT', 0, NUMBER.max_slots)
end

-- Whether --min-hold keeps the lease of this owner record, and no process does.
local function is_kept(record)
  return string.find(record, '"' .. WORD.kept_field .. '":', 1, true) ~= nil
end

-- Of the readers that share the lock now the latest: its share, whose fence is the largest; or nil.
-- One that --min-hold keeps has no process any more, so it comes behind all others; of several such
-- it is the one that ends last.
local function latest_share(time)
  local ids = living_readers(time)
  local shares = ids[1] and redis.pcall('HMGET', KEYS.shares, unpack(ids)) or {}
  local latest, highest = nil, -1
  for i = #shares, 1, -1 do
    local rank = tonumber((string.match(shares[i] or '', SHARE))) or -1
    if rank > highest then
      local share = read_share(shares[i])
      if is_kept(share.record) then rank = 0 end
      if rank > highest then latest, highest = share, rank end
    end
  end
  return latest
end

-- The reply that names the holder: REPLY.holder, with -1 for what is not known. For a shared lock
-- the age is the time since it became shared; the rest is the latest reader's. Not that of the
-- owner record: it names the last one to come, also when that one has ended, and an older version
-- that releases it would not change that.
local function describe(word, value, type_name, time)
  local shared = value == SHARED
  local id = type_name and 'type:' .. type_name or shared and WORD.all_shares
    or redis.sha1hex(value)
  local owner = read_owner()
  local is_known = owner.lease == id
  local age = is_known and math.max(0, time - (tonumber(owner.since) or 0)) or -1
  if shared then owner = latest_share(time) or {} elseif not is_known then owner = {} end
  return {
    word, id, type_name or 'string', remaining_ms(time), (shared or is_known) and 1 or 0,
    owner.fence or '', age, tonumber(owner.supervised) or 0, owner.record or ''
  }
end

-- The same for one share, with its slot at the end; and the error if its entry cannot be read.
local function describe_share(word, id, ends, time)
  local stored = redis.error_reply(ELSEWHERE)
  if KEYS.shares then stored = redis.pcall('HGET', KEYS.shares, id) end
  local share = read_share(stored) or {}
  local age = share.since and math.max(0, time - share.since) or -1
  return {
    word, id, 'string', ends - time, 1, share.fence or '', age, share.supervised or 0,
    share.record or '', share.slot or -1
  }, first_error(stored)
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
  return first_error(
    write_share(id, share),
    -- To an older version the owner record shows the fence of the last reader to come, the largest.
    owner.lease == WORD.all_shares and (tonumber(owner.fence) or 0) < tonumber(fence)
      and redis.pcall('HSET', KEYS.owner, 'fence', fence))
end

local function forget_share(id)
  redis.call('ZREM', KEYS.readers, id)
  local stored = KEYS.shares and redis.call('HGET', KEYS.shares, id)
  if not stored then return end
  local share = read_share(stored)
  local has_slot = KEYS.slots and share and share.slot >= 0
  if has_slot and redis.call('HGET', KEYS.slots, share.slot) == id then
    redis.call('HDEL', KEYS.slots, share.slot)
  end
  redis.call('HDEL', KEYS.shares, id)
end

-- A server that is out of memory lets a script write once its first write was one that needs no
-- memory. This one changes nothing.
local function write_without_memory()
  if KEYS.readers then redis.pcall('ZREM', KEYS.readers, '') end
end

local function forget_ended_shares(time)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS.readers, '-inf', decimal(time))) do
    forget_share(id)
  end
end

local function end_sharing()
  redis.call('DEL', KEYS.lock)
  if KEYS.owner then redis.call('DEL', KEYS.owner) end
end

-- Lets the marker and all data of the shares expire with the last share, and deletes both once
-- there is none. `marks`: makes a marker if there is none. -> an error or nil
local function bound_shares(time, marks)
  forget_ended_shares(time)
  local last = last_share_end()
  if not last then return end_sharing() end
  local rest = decimal(last - time)
  local failure
  for _, key in pairs({KEYS.readers, KEYS.shares, KEYS.slots, KEYS.owner}) do
    failure = failure or first_error(redis.pcall('PEXPIRE', key, rest))
  end
  local marked = redis.pcall('PEXPIRE', KEYS.lock, rest)
  if marked == 0 and marks then
    marked = redis.pcall('SET', KEYS.lock, SHARED, 'NX', 'PX', rest) or redis.error_reply(NOT_SET)
  end
  return failure or first_error(marked)
end

-- Adds a reader. Only while no exclusive lease holds the lock. -> an error or nil
local function add_share(id, ttl, share, time)
  forget_share(id)
  local others = read_owner()
  if others.lease ~= WORD.all_shares then others = {} end
  return first_error(
    redis.pcall('ZADD', KEYS.readers, decimal(time + ttl), id),
    write_share(id, share),
    share.slot >= 0 and redis.pcall('HSET', KEYS.slots, share.slot, id),
    write_owner(WORD.all_shares, share.fence, tonumber(others.since) or share.since,
      share.supervised, share.record, ttl, others.is_mute),
    bound_shares(time, true))
end

-- When the share of another in this slot ends, if one lives there; and the id in the slot.
local function end_of_other_in(slot, id, time)
  local there = redis.call('HGET', KEYS.slots, slot)
  return there and there ~= id and share_end(there, time), there
end

-- The slots below `limit` with a living share: {[slot] = true}, how many slots there are up to the
-- last of them, and which of these shares ends first; or nil and the error. However many slots
-- there are, this takes a few calls, and reads no more of the table of slots than it takes to find
-- all living shares there. The table may have been lost: a share that is not in it says itself in
-- which slot it is; of more than NUMBER.max_slots living readers only those that end first say it.
-- -> at the end the error if that cannot be read
local function taken_slots(limit, time)
  local living = KEYS.readers and living_readers(time) or {}
  if is_error(living) then return nil, living end
  local missing = {}
  for i, id in ipairs(living) do missing[id] = i end
  local number_missing = #living
  -- Then more readers live than were read.
  local is_part = number_missing == NUMBER.max_slots
  local taken, count, soonest = {}, 0, nil
  local function take(slot, rank)
    taken[slot] = true
    count = math.max(count, slot + 1)
    if rank then soonest = math.min(soonest or rank, rank) end
  end

  local found, first = {}, 0
  while KEYS.slots and number_missing > 0 and first < limit do
    local numbers = {}
    for slot = first, math.min(limit, first + math.max(first, number_missing, 16)) - 1 do
      numbers[#numbers + 1] = slot
    end
    local ids = redis.pcall('HMGET', KEYS.slots, unpack(numbers))
    if is_error(ids) then return nil, ids end
    for i, id in ipairs(ids) do
      local rank = missing[id] or found[id]
      if rank or id and is_part and share_end(id, time) then take(numbers[i], rank) end
      if missing[id] then
        found[id], missing[id] = rank, nil
        if not is_part then number_missing = number_missing - 1 end
      end
    end
    first = first + #numbers
  end

  local others = {}
  for id in pairs(number_missing > 0 and missing or {}) do others[#others + 1] = id end
  local shares = {}
  if others[1] then
    shares = KEYS.shares and redis.pcall('HMGET', KEYS.shares, unpack(others))
      or redis.error_reply(ELSEWHERE)
  end
  for i, stored in ipairs(shares) do
    local share = read_share(stored)
    if share and share.slot >= 0 and share.slot < limit then
      take(share.slot, missing[others[i]])
    end
  end
  return taken, count, living[soonest], first_error(shares)
end

-- A digit for each of the first `count` slots, 1: it is free.
local function free_digits(taken, count)
  local digits = {}
  for slot = 0, count - 1 do digits[slot + 1] = taken[slot] and '0' or '1' end
  return table.concat(digits)
end

-- Of the slots 0 to limit - 1: the wanted one, or the lowest (wanted -1), if it is free; which
-- slots are free, as '0110…'; and when the first of the taken slots ends, if there is one. Or nil
-- and the error.
local function find_slot(limit, wanted, time)
  local taken, count, soonest, unreadable = taken_slots(limit, time)
  if not taken or unreadable then return nil, unreadable or count end
  local found
  for slot = 0, count - 1 do
    if not found and not taken[slot] and (wanted == -1 or wanted == slot) then found = slot end
  end
  local next = math.max(count, wanted)
  if not found and next < limit and (wanted == -1 or wanted == next) then found = next end
  local digits = free_digits(taken, count) .. string.rep('1', limit - count)
  return found, digits, soonest and share_end(soonest, time)
end
