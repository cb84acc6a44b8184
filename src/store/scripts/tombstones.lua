-- Follows prelude.lua: tombstones, for those whose lease is gone. A lease that was released by hand
-- leaves its id, and one that its keeper left to possible users LEFT with its id. A lease that was
-- broken by force leaves BROKEN with its id, and BREAKER with the owner record of the process that
-- broke it, both with the same score. A lease that was asked to stop leaves ENDED with its id when
-- it is released. The score is the time when they may be removed.
local LEFT = 'left:'
local BROKEN = 'broken:'
local BREAKER = '!'
local ENDED = 'ended:'

-- The owner record of the process that broke this lease by force ('': it cannot be read), or nil.
local function breaker_of(id)
  local ends = redis.pcall('ZSCORE', KEYS.released, BROKEN .. id)
  if type(ends) ~= 'string' then return nil end
  local first = redis.pcall('ZRANGEBYSCORE', KEYS.released, ends, ends, 'LIMIT', 0, 1)[1] or ''
  return string.sub(first, 1, #BREAKER) == BREAKER and string.sub(first, #BREAKER + 1) or ''
end

-- Leaves tombstones for as long as the leases would have lasted, so that the processes that keep
-- them learn what happened (R9). `breaker`: the owner record of the process that broke them; nil:
-- they were released. If another client has removed the lock's expiry, that of the owner record
-- counts, so call this before the record is deleted.
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

-- Leaves the sign that the lease was released: by the process that kept it, its last user, or by
-- hand, which the lease of a living run does not permit. So `stop` can tell a release from a break
-- (R12). Only for a lease that was asked to stop, so that no other release costs more.
-- -> NUMBER.sign_is_due if it could not be left, because a cluster moves the slot; otherwise nil
local function leave_end(id, record, time)
  if not record or not string.find(record, '"' .. WORD.stop_field .. '":{', 1, true) then return end
  if not KEYS.released then return NUMBER.sign_is_due end
  leave_tombstones({ENDED .. id}, nil, TIME.idle_life, time)
end

-- Whether the lease left that sign.
local function has_ended_by_release(id)
  return type(redis.pcall('ZSCORE', KEYS.released, ENDED .. id)) == 'string'
end
