-- Follows runs.lua: the shares of a shared lock, and their slots.

-- The end of the share, or nil if it has ended. An error ends the script, as it must not look like
-- a share that has ended (R11).
local function share_end(id, time)
  local ends = tonumber(redis.call('ZSCORE', KEYS.readers, id))
  if ends and ends > time then return ends end
end

-- The number of readers that share the lock, or an error.
local function count_readers(time)
  return redis.pcall('ZCOUNT', KEYS.readers, '(' .. decimal(time), '+inf')
end

-- The time when the last share ends or ended, or nil.
local function last_share_end()
  return tonumber(redis.call('ZRANGE', KEYS.readers, -1, -1, 'WITHSCORES')[2])
end

-- A share in KEYS.shares: 'fence since supervised slot record'. The slot is a number, a name, or
-- NO_SLOT. The last capture is the position of the record. Of a thousand shares, most are only read
-- for their fence.
local SHARE = '^(%d+) (%d+) (%d) ([%w._:-]+) ()'
local NO_SLOT = -1

-- A slot as it is stored. Digits alone are a number: some names, such as '1e3', are numbers for
-- tonumber(), too.
local function slot_of(text)
  return string.find(text, '^%-?%d+$') and tonumber(text) or text
end

-- The slots in an argument such as '1,4' or 'phone1,phone2'.
local function slots_in(text)
  local slots = {}
  for slot in string.gmatch(text, '[^,]+') do slots[#slots + 1] = slot_of(slot) end
  return slots
end

-- Parses a stored share; nil if it cannot be read.
local function read_share(stored)
  if type(stored) ~= 'string' then return nil end
  local fence, since, supervised, slot, record_at = string.match(stored, SHARE)
  if not fence then return nil end
  return {
    fence = fence, since = tonumber(since), supervised = tonumber(supervised),
    slot = slot_of(slot), record = string.sub(stored, record_at)
  }
end

local function write_share(id, share)
  return redis.pcall('HSET', KEYS.shares, id, table.concat({
    share.fence, decimal(share.since), share.supervised, share.slot, share.record
  }, ' '))
end

-- The ids of the living readers, ordered by their ends, or an error. Of very many readers only
-- those that end first, as the reply must not take the server long.
local function living_readers(time)
  return redis.pcall(
    'ZRANGEBYSCORE', KEYS.readers, '(' .. decimal(time), '+inf', 'LIMIT', 0, NUMBER.max_slots)
end

-- Whether this owner record has the field. In JSON, text within a string cannot look like a field.
local function has_field(record, name)
  return string.find(record, '"' .. name .. '":', 1, true) ~= nil
end

-- The holder's record with this field, such as a stop request; nil if it already has one of that
-- name, or is not a record of ours.
local function with_field(record, field, value)
  if not string.match(record or '', '^{.+}$') or has_field(record, field) then return end
  return string.sub(record, 1, -2) .. ',"' .. field .. '":' .. value .. '}'
end

-- Whether only --min-hold keeps the lease of this owner record, and no process does.
local function is_kept(record)
  return has_field(record, WORD.kept_field)
end

-- The share of the latest living reader, which has the largest fence; or nil. Holds, and shares
-- that only --min-hold keeps, have no process, so all others take precedence; of several such
-- shares, it is the one that ends last. -> that share, and the ids of the holds among the shares,
-- of many those that end last
local function latest_share(time)
  local ids = living_readers(time)
  local shares = ids[1] and redis.pcall('HMGET', KEYS.shares, unpack(ids)) or {}
  local latest, highest, holds = nil, -1, {}
  for i = #shares, 1, -1 do
    local rank = tonumber((string.match(shares[i] or '', SHARE))) or -1
    local is_hold = rank >= 0 and has_field(shares[i], WORD.hold_field)
    if is_hold and #holds < NUMBER.max_holds then holds[#holds + 1] = ids[i] end
    if rank > highest then
      local share = read_share(shares[i])
      local has_no_process = is_hold or is_kept(share.record)
        or has_field(share.record, WORD.lifted_field)
      if has_no_process then rank = 0 end
      if rank > highest then latest, highest = share, rank end
    end
  end
  return latest, holds
end

-- A number in an owner record. Within its strings, every quotation mark follows a backslash.
local function number_in(record, field)
  return tonumber(string.match(record, '"' .. field .. '":(%d+)'))
end

-- The number of slots that the lease or the waiter of this owner record takes.
local function take_of(record)
  return math.min(number_in(record, WORD.take_field) or 1, NUMBER.max_slots)
end

-- The id of the nth share of a lease that takes several slots. Each of its slots has a separate
-- share, so that the table of slots shows the holder of each.
local function part_id(id, nth)
  return nth == 1 and id or id .. WORD.part_sign .. nth - 1
end

-- The ids of all shares of the lease with this first share.
local function parts_of(id, share)
  local parts = {id}
  local is_part = string.find(id, WORD.part_sign, 1, true)
  for nth = 2, not is_part and share and take_of(share.record) or 1 do
    parts[nth] = part_id(id, nth)
  end
  return parts
end

-- The field of KEYS.shares for the users of a share.
local function users_of_share(id)
  return WORD.users_field .. ':' .. id
end

-- The field of KEYS.shares for the longest ttl that was requested for a share, see max_life().
local function ttl_of_share(id)
  return 'ttl:' .. id
end

-- Removes a share. Removing the first share of a lease removes all of them.
local function forget_share(id)
  redis.call('ZREM', KEYS.readers, id)
  if not KEYS.shares then return end
  redis.call('HDEL', KEYS.shares, users_of_share(id))
  redis.call('HDEL', KEYS.shares, ttl_of_share(id))
  local stored = redis.call('HGET', KEYS.shares, id)
  if not stored then return end
  local share = read_share(stored)
  local has_slot = KEYS.slots and share and share.slot ~= NO_SLOT
  if has_slot and redis.call('HGET', KEYS.slots, share.slot) == id then
    redis.call('HDEL', KEYS.slots, share.slot)
  end
  redis.call('HDEL', KEYS.shares, id)
  local parts = parts_of(id, share)
  for nth = 2, #parts do forget_share(parts[nth]) end
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

-- Lets the marker and all data of the shares expire with the last share, and deletes them if there
-- is none. `marks`: creates a marker if there is none. -> an error or nil
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
  if marked == 0 and marks then marked = set_lock(SHARED, rest) end
  return failure or first_error(marked)
end

-- Adds a reader, with a share for each of these slots, by number or name. Requires that no
-- exclusive lease holds the lock.
-- -> an error or nil
local function add_share(id, ttl, share, slots, time)
  forget_share(id)
  local others = read_owner()
  if others.lease ~= WORD.all_shares then others = {} end
  local failure
  for nth = 1, math.max(#slots, 1) do
    local part = part_id(id, nth)
    share.slot = slots[nth] or NO_SLOT
    failure = failure or first_error(
      redis.pcall('ZADD', KEYS.readers, decimal(time + ttl), part),
      write_share(part, share),
      share.slot ~= NO_SLOT and redis.pcall('HSET', KEYS.slots, share.slot, part))
  end
  return failure or first_error(
    redis.pcall('HSET', KEYS.shares, ttl_of_share(id), decimal(ttl)),
    write_owner(WORD.all_shares, share.fence, tonumber(others.since) or share.since,
      share.supervised, share.record, ttl, others.cannot_publish),
    bound_shares(time, true))
end

-- The end of another lease's living share in this slot, or nil or false; and the id in the slot.
local function end_of_other_in(slot, id, time)
  local there = redis.call('HGET', KEYS.slots, slot)
  return there and there ~= id and share_end(there, time), there
end

-- A pool of slots, as a client or waiter wants it: {limit} for the numbers below `limit`; or
-- {limit, slots} for certain slots only, which are all names or all numbers. Its slots have
-- positions, from 0 on, in the order of that client. Other clients may have another order, so only
-- the slot itself is ever stored.
local ONLY = ',"' .. WORD.only_field .. '":"'
local pool_in
do
  local lists = {}
  -- The pool that the owner record of a waiter shows. The list is the end of the record: it may be
  -- long, and many waiters have the same.
  function pool_in(record)
    local _, before = string.find(record, ONLY, 1, true)
    if not before then
      local limit = number_in(record, WORD.slots_field) or NUMBER.max_slots
      return {limit = math.min(limit, NUMBER.max_slots)}
    end
    local text = string.sub(record, before + 1, -3)
    lists[text] = lists[text] or slots_in(text)
    return {limit = #lists[text], slots = lists[text]}
  end
end

-- The record without the list of slots, which only a waiter needs.
local function without_list(record)
  local first = string.find(record, ONLY, 1, true)
  return first and string.sub(record, 1, first - 1) .. '}' or record
end

-- The record of a waiter, for a reply, which must not be large.
local function shown_record(record)
  return #record > NUMBER.max_shown and without_list(record) or record
end

local function slot_at(pool, position)
  return pool.slots and pool.slots[position + 1] or position
end

-- The slots at these positions.
local function slots_at(pool, positions)
  local slots = {}
  for i, position in ipairs(positions) do slots[i] = slot_at(pool, position) end
  return slots
end

-- {[slot] = position} for a pool of certain slots.
local function positions_in(pool)
  local positions = {}
  for i, slot in ipairs(pool.slots or {}) do positions[slot] = i - 1 end
  return positions
end

-- The slots of stored shares of living readers, NO_SLOT where there is none; or nil and an error: a
-- share cannot be read, so it may be in any slot, or a slot has not this type.
local function slots_of_shares(shares, slot_type)
  if is_error(shares) then return nil, shares end
  local slots, problem = {}, nil
  for i, stored in ipairs(shares) do
    local _, _, _, text = string.match(stored or '', SHARE)
    slots[i] = text and slot_of(text)
    if not text then
      problem = problem or redis.error_reply(WORD.unknown_slot_error .. ' a share cannot be read')
    elseif slots[i] ~= NO_SLOT and type(slots[i]) ~= slot_type then
      local is_numbered = slot_type == 'string'
      return nil, redis.error_reply(is_numbered
        and WORD.numbered_slots_error .. ' the slots have numbers'
        or WORD.named_slots_error .. ' the slots have names')
    end
  end
  return not problem and slots, problem
end

-- The slots of the pool with a living share. -> {[position] = true}, the number of positions up to
-- the last of these, the id of the share that ends first, and an error if it is not known which
-- slots some shares have; or nil and an error
--
-- However many slots there are, this takes a few calls, and reads only as much of the table of
-- slots as it needs to find all living shares. The table may have been lost, so a share that is not
-- in it is read for its slot; of more than NUMBER.max_slots living readers, only those that end
-- first.
local function taken_slots(pool, time)
  local living = KEYS.readers and living_readers(time) or {}
  if is_error(living) then return nil, living end
  local missing = {}
  for i, id in ipairs(living) do missing[id] = i end
  local number_missing = #living
  -- Then there may be more living readers than were read.
  local is_part = number_missing == NUMBER.max_slots
  local taken, count, soonest = {}, 0, nil
  local function take(position, rank)
    taken[position] = true
    count = math.max(count, position + 1)
    if rank then soonest = math.min(soonest or rank, rank) end
  end

  local found, first = {}, 0
  while KEYS.slots and number_missing > 0 and first < pool.limit do
    local positions = {}
    for at = first, math.min(pool.limit, first + math.max(first, number_missing, 16)) - 1 do
      positions[#positions + 1] = at
    end
    local ids = redis.pcall('HMGET', KEYS.slots, unpack(slots_at(pool, positions)))
    if is_error(ids) then return nil, ids end
    for i, id in ipairs(ids) do
      local rank = missing[id] or found[id]
      if rank or id and is_part and share_end(id, time) then take(positions[i], rank) end
      if missing[id] then
        found[id], missing[id] = rank, nil
        if not is_part then number_missing = number_missing - 1 end
      end
    end
    first = first + #positions
  end

  local others = {}
  for id in pairs(number_missing > 0 and missing or {}) do others[#others + 1] = id end
  local shares = {}
  if others[1] then
    shares = KEYS.shares and redis.pcall('HMGET', KEYS.shares, unpack(others))
      or elsewhere()
  end
  local slots, problem = slots_of_shares(shares, type(slot_at(pool, 0)))
  local positions = positions_in(pool)
  for i, slot in ipairs(slots or {}) do
    local position = positions[slot]
    if not pool.slots and slot ~= NO_SLOT and slot < pool.limit then position = slot end
    if position then take(position, missing[others[i]]) end
  end
  return taken, count, living[soonest], problem
end

-- The id of the living reader in this slot; or nil, and an error if there may be one, as it must
-- not look like a free slot (R11).
local function reader_in(slot, time)
  -- A share whose entry was lost is still in the table of slots.
  local there = redis.call('HGET', KEYS.slots, slot)
  if there and share_end(there, time) then return there end
  local ids = living_readers(time)
  if is_error(ids) then return nil, ids end
  local shares = ids[1] and redis.call('HMGET', KEYS.shares, unpack(ids)) or {}
  local slots, problem = slots_of_shares(shares, type(slot))
  for i, its_slot in ipairs(slots or {}) do
    if its_slot == slot then return ids[i] end
  end
  return nil, problem
end

-- A digit for each of the first `count` positions; 1: its slot is free.
local function free_digits(taken, count)
  local digits = {}
  for position = 0, count - 1 do digits[position + 1] = taken[position] and '0' or '1' end
  return table.concat(digits)
end

-- Finds `take` free slots of the pool: the wanted ones, or the first if `wanted` is empty. Those in
-- the set `left`, if it is given, are left to others, as if they were taken.
-- -> their positions, or nil if they are not all free; which slots are free, as '0110…'; and when
--    the first of the taken slots ends, or nil. Or nil and an error
local function find_slots(pool, take, wanted, time, left)
  local taken, count, soonest, problem = taken_slots(pool, time)
  if not taken or problem then return nil, problem or count end
  for position = 0, left and pool.limit - 1 or -1 do
    if left[slot_at(pool, position)] then
      taken[position], count = true, math.max(count, position + 1)
    end
  end
  local found = {}
  local function try(position)
    if position < pool.limit and not taken[position] and #found < take then
      found[#found + 1] = position
    end
  end
  for _, position in ipairs(wanted) do try(position) end
  local last = wanted[1] and -1 or math.min(pool.limit, count + take) - 1
  for position = 0, last do try(position) end
  local digits = free_digits(taken, count) .. string.rep('1', pool.limit - count)
  return #found == take and found or nil, digits, soonest and share_end(soonest, time)
end
