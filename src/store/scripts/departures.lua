-- Who must go: waiters that are superseded (Q9) or dismissed (Q12), and the holder that a newer run
-- replaces (Q11).

-- The newest waiter so far that supersedes older ones. -> its ticket, id and record; nil if there
-- is none; or nil, nil, nil and an error, if the field is in the format of a newer version
local function newest_superseder()
  local stored = redis.call('HGET', KEYS.waiters, NEWEST)
  if not stored then return nil end
  local ticket, id, record = string.match(stored, '^(%d+) (%S+) (.*)$')
  if not ticket then
    return nil, nil, nil, redis.error_reply(
      'ERR the newest run that supersedes others is of a newer version: upgrade redlock-cli')
  end
  return tonumber(ticket), id, record
end

-- A waiter that must not wait any longer leaves the queue.
local function send_away(id, state, time)
  local rank = redis.call('ZRANK', KEYS.queue, id)
  drop(id)
  notify_next(state, time)
  if rank == 0 then notify_first_of_end(state, time) end
end

-- -> the largest ticket that is dismissed, 0 if none is; and by which request
local function last_dismissal()
  local ticket, request = string.match(
    redis.call('HGET', KEYS.waiters, DISMISSED) or '', '^(%d+) (.*)$')
  return tonumber(ticket) or 0, request
end

-- Compares the waiter with the newest one so far that supersedes others. The older of the two, by
-- ticket and id, leaves the queue; if that is the other one, it is notified. So each server
-- remembers the newest waiter, and the newest of all is superseded on no server.
-- -> id and record of the waiter that supersedes this one; nil if there is none; or nil, nil and an
--    error
local function supersede(id, ticket, record, state, time)
  local its_ticket, other, its_record, unreadable = newest_superseder()
  -- The unreadable waiter may be newer than this one, and must not be overwritten.
  if unreadable then return nil, nil, unreadable end
  if other and is_before(ticket, id, its_ticket, other) then
    send_away(id, state, time)
    return other, its_record
  end
  if other ~= id then
    local newest = {NEWEST, decimal(ticket) .. ' ' .. id .. ' ' .. record}
    -- Because of the newest waiter, KEYS.waiters outlives an empty queue, with its stale entries.
    if redis.call('ZCARD', KEYS.queue) == 0 then
      local dismissal = redis.call('HGET', KEYS.waiters, DISMISSED)
      redis.call('DEL', KEYS.waiters)
      if dismissal then newest[3], newest[4] = DISMISSED, dismissal end
    end
    local set = redis.pcall('HSET', KEYS.waiters, unpack(newest))
    if is_error(set) then return nil, nil, set end
  end
  redis.call('PEXPIRE', KEYS.waiters, TIME.newest_life)
  if other and other ~= id then
    publish(other, WORD.recheck)
    send_away(other, state, time)
  end
end

-- Asks the holder of an exclusive lease to make room for this waiter, the newest one, if that
-- holder runs with --replace, too, and has an older place (Q11). `value`: that of the lock. A
-- request that is already there stays: it is from a run newer than the holder, so the holder obeys
-- it.
-- -> an error or nil
local function ask_older(value, id, ticket, request)
  local owner = read_owner()
  local its_ticket, its_id = string.match(owner.record or '',
    '"' .. WORD.place_field .. '":{"ticket":(%d+),"waiter":"([^"]+)"}')
  local is_older = its_ticket and is_before(tonumber(its_ticket), its_id, ticket, id)
  if not is_older or type(value) ~= 'string' or owner.lease ~= redis.sha1hex(value) then return end
  local asked = with_field(owner.record, WORD.replaced_field, request)
  return asked and first_error(redis.pcall('HSET', KEYS.owner, 'record', asked))
end
