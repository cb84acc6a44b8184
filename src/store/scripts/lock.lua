-- Follows runs.lua: what a server knows of the lock and of its leases, and what changes it.
local TOMBSTONE_LIFE = 35000 -- for a lease without a known end: more than a ttl of 30 s

-- Reads the lock key: false when it does not exist; its value; or, with the type's name as second
-- result, true for a key that is not a string. Any error other than a wrong type (such as missing
-- rights) is returned as it is.
local function look()
  local value = redis.pcall('GET', KEYS.lock)
  if is_error(value) and string.find(value.err, 'WRONGTYPE', 1, true) then
    return true, redis.call('TYPE', KEYS.lock).ok
  end
  return value
end

-- When the share ends, if it has not ended.
local function share_end(id, time)
  local score = redis.pcall('ZSCORE', KEYS.readers, id)
  local ends = type(score) == 'string' and tonumber(score)
  if ends and ends > time then return ends end
end

-- The state of the lock: 'free'; 'shared', SHARED; 'held' with the results of look(); or nil and
-- the error. Without its marker the lock is still shared while shares live; without shares it is
-- shared while the marker lives. So losing one of the two keys does not lose both.
local function standing(time)
  local value, type_name = look()
  if is_error(value) then return nil, value end
  if value and value ~= SHARED then return 'held', value, type_name end
  local shares = redis.pcall('ZCOUNT', KEYS.readers, '(' .. decimal(time), '+inf')
  if is_error(shares) then return nil, shares end
  if value or shares > 0 then return 'shared', SHARED end
  return 'free', false
end

-- ms until the lock ends, -1 for never: the marker's expiry, or without a marker the last share's.
local function left(time)
  local marker = redis.call('PTTL', KEYS.lock)
  if marker ~= -2 then return marker end
  local last = redis.call('ZRANGE', KEYS.readers, -1, -1, 'WITHSCORES')
  return last[2] and math.max(0, tonumber(last[2]) - time) or -1
end

-- What is stored of a share: fence, since, supervised, slot, owner record; nil: it is unreadable.
local function parts_of_share(stored)
  if type(stored) ~= 'string' then return nil end
  return string.match(stored, '^(%d+) (%d+) (%d) (%-?%d+) (.*)$')
end

-- Of the readers that share the lock now the latest: its fence, which is the largest, supervised
-- and its owner record. One that --min-hold keeps has no process any more, so it comes behind all
-- others; of several such it is the one that ends last.
local function latest_reader(time)
  -- Of more readers than these only those that end first: a reply must not take the server long.
  local ids = redis.call(
    'ZRANGEBYSCORE', KEYS.readers, '(' .. decimal(time), '+inf', 'LIMIT', 0, NUMBER.max_slots)
  local shares = {}
  if ids[1] then shares = redis.pcall('HMGET', KEYS.shares, unpack(ids)) end
  local fence, supervised, record, highest = '', 0, '', 0
  for _, stored in ipairs(shares) do
    local its_fence, _, its_supervised, _, its_record = parts_of_share(stored)
    local rank = tonumber(its_fence) or -1
    if string.find(its_record or '', '"' .. WORD.kept_field .. '":', 1, true) then rank = 0 end
    if rank >= highest then
      fence, supervised, record, highest = its_fence, tonumber(its_supervised), its_record, rank
    end
  end
  return fence, supervised, record
end

-- The reply that names the holder: {word, id, type, ms left or -1, ours, fence, age or -1,
-- supervised, record}. For a shared lock the age is the time since it became shared; the rest is
-- the latest reader's. Not that of the owner record: it names the last one to come, also when that
-- one has ended, and an older version that releases it would not change that.
local function describe(word, value, type_name, time)
  local shared = value == SHARED
  local id = type_name and 'type:' .. type_name or shared and WORD.all_shares
    or redis.sha1hex(value)
  local owner = redis.pcall('HMGET', KEYS.owner, 'lease', 'fence', 'since', 'supervised', 'record')
  local is_known = not is_error(owner) and owner[1] == id
  local age = -1
  if is_known then age = math.max(0, time - (tonumber(owner[3]) or 0)) end
  if shared then
    local fence, supervised, record = latest_reader(time)
    return {word, id, 'string', left(time), 1, fence, age, supervised, record}
  end
  if not is_known then return {word, id, type_name or 'string', left(time), 0, '', -1, 0, ''} end
  return {
    word, id, 'string', left(time), 1, owner[2] or '', age, tonumber(owner[4]) or 0, owner[5] or ''
  }
end

-- The same for one share, with its slot at the end.
local function describe_share(word, id, ends, time)
  local fence, since, supervised, slot, record =
    parts_of_share(redis.pcall('HGET', KEYS.shares, id))
  local age = since and math.max(0, time - tonumber(since)) or -1
  return {
    word, id, 'string', ends - time, 1, fence or '', age, tonumber(supervised) or 0, record or '',
    tonumber(slot) or -1
  }
end

-- The owner record of the process that broke this lease by force ('': the record is unreadable), or
-- nil.
local function breaker_of(id)
  local ends = redis.pcall('ZSCORE', KEYS.released, 'broken:' .. id)
  if type(ends) ~= 'string' then return nil end
  local first = redis.pcall('ZRANGEBYSCORE', KEYS.released, ends, ends, 'LIMIT', 0, 1)[1]
  return string.match(first or '', '^!(.*)$') or ''
end

-- Leaves tombstones for as long as the lease would have lasted, so that a process that keeps it
-- learns what became of it (R9). Another client may have removed the lock's expiry; then the
-- record's expiry counts. So this must run before the record is deleted.
local function leave_tombstones(members, rest, time)
  local life = rest > 0 and rest or KEYS.owner and redis.call('PTTL', KEYS.owner) or 0
  if life <= 0 then life = TOMBSTONE_LIFE end
  redis.pcall('ZREMRANGEBYSCORE', KEYS.released, '-inf', decimal(time))
  for _, member in ipairs(members) do
    redis.pcall('ZADD', KEYS.released, decimal(time + life), member)
  end
  local kept = redis.pcall('PTTL', KEYS.released)
  if type(kept) == 'number' and kept < life then
    redis.pcall('PEXPIRE', KEYS.released, decimal(life))
  end
end

-- The reply when the caller's lease is not here: {'gone', 1} when it was released by hand, whatever
-- lease came after; otherwise the holder, or {'gone', 0}. When it was broken by force, the breaker
-- is at the end: {'held', …, breaker} or {'gone', 2, breaker}.
local function not_ours(id, value, type_name, time)
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

-- 'exclusive', or 'shared' and when the share ends, if the lease of this token is here; otherwise
-- nil and the reply to its holder.
local function mine(token, time)
  local value, type_name = look()
  if is_error(value) then return nil, value end
  if value == token then return 'exclusive' end
  local id = redis.sha1hex(token)
  if value == SHARED and not KEYS.readers then
    return nil, redis.error_reply('TRYAGAIN the shares are elsewhere')
  end
  if not value or value == SHARED then
    local ends = share_end(id, time)
    if ends then return 'shared', ends end
  end
  return nil, not_ours(id, value, type_name, time)
end

-- Raises the fence counter to our lease's fence, and writes that fence to the records. -> an error
-- or nil
local function lift_fence(how, id, fence, ttl)
  local last, unusable = counter(MAX_FENCE)
  if not last then return unusable end
  local lifted = last < tonumber(fence) and set_counter(tonumber(fence), ttl)
  if is_error(lifted) then return lifted end
  local owner = redis.pcall('HMGET', KEYS.owner, 'lease', 'fence')
  if how == 'exclusive' then
    if owner[1] ~= id or owner[2] == fence then return end
    return first_error(redis.pcall('HSET', KEYS.owner, 'fence', fence))
  end
  local stored = redis.pcall('HGET', KEYS.shares, id)
  if type(stored) ~= 'string' or string.match(stored, '^%d+') == fence then return end
  return first_error(
    redis.pcall('HSET', KEYS.shares, id, (string.gsub(stored, '^%d+', fence))),
    -- To an older version the owner record shows the fence of the last reader to come, the largest.
    owner[1] == WORD.all_shares and (tonumber(owner[2]) or 0) < tonumber(fence)
      and redis.pcall('HSET', KEYS.owner, 'fence', fence))
end

local function forget_share(id)
  redis.call('ZREM', KEYS.readers, id)
  local stored = redis.call('HGET', KEYS.shares, id)
  local slot = stored and string.match(stored, '^%d+ %d+ %d (%d+) ')
  if slot and redis.call('HGET', KEYS.slots, slot) == id then
    redis.call('HDEL', KEYS.slots, slot)
  end
  redis.call('HDEL', KEYS.shares, id)
end

-- A server that is out of memory lets a script write once its first write was one that needs no
-- memory. This one changes nothing.
local function write_without_memory()
  if KEYS.readers then redis.pcall('ZREM', KEYS.readers, '') end
end

-- Lets the marker and all data of the shares expire with the last share, and deletes both once
-- there is none. -> an error or nil
local function bound_shares(time)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS.readers, '-inf', decimal(time))) do
    forget_share(id)
  end
  local last = redis.call('ZRANGE', KEYS.readers, -1, -1, 'WITHSCORES')
  if not last[2] then
    redis.call('DEL', KEYS.lock)
    redis.call('DEL', KEYS.owner)
    return
  end
  local rest = decimal(tonumber(last[2]) - time)
  for _, key in ipairs({KEYS.readers, KEYS.shares, KEYS.slots, KEYS.owner}) do
    redis.pcall('PEXPIRE', key, rest)
  end
  if redis.pcall('PEXPIRE', KEYS.lock, rest) == 1 then return end
  return first_error(redis.pcall('SET', KEYS.lock, SHARED, 'NX', 'PX', rest))
end

-- Adds a reader. Only while no exclusive lease holds the lock. -> an error or nil
local function add_share(id, ttl, fence, since, supervised, slot, record, time)
  forget_share(id)
  local others = redis.pcall('HMGET', KEYS.owner, 'lease', 'since', 'mute')
  if is_error(others) or others[1] ~= WORD.all_shares then others = {} end
  return first_error(
    redis.pcall('ZADD', KEYS.readers, decimal(time + ttl), id),
    redis.pcall('HSET', KEYS.shares, id,
      fence .. ' ' .. decimal(since) .. ' ' .. supervised .. ' ' .. slot .. ' ' .. record),
    slot >= 0 and redis.pcall('HSET', KEYS.slots, slot, id),
    write_owner(WORD.all_shares, fence, tonumber(others[2]) or since, supervised, record, ttl,
      others[3] == '1'),
    bound_shares(time))
end

-- Of the slots 0 to limit - 1: the wanted one, or the lowest (wanted -1), if it is free; which
-- slots are free, as '0110…'; and when the first of the taken slots ends, if there is one. Or nil
-- and the error.
local function find_slot(limit, wanted, time)
  local numbers = {}
  for slot = 0, limit - 1 do numbers[slot + 1] = slot end
  local readers = redis.pcall('HMGET', KEYS.slots, unpack(numbers))
  if is_error(readers) then return nil, readers end
  local found, free, soonest = nil, {}, nil
  for slot = 0, limit - 1 do
    local id = readers[slot + 1]
    local ends = id and share_end(id, time)
    free[slot + 1] = ends and '0' or '1'
    if ends then
      soonest = math.min(soonest or ends, ends)
    elseif not found and (wanted == -1 or wanted == slot) then
      found = slot
    end
  end
  return found, table.concat(free), soonest
end
