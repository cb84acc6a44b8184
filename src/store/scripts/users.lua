-- Follows lock.lua: the users of a lease, which are processes that work under it but did not
-- acquire it (PROTOCOL U1). They are stored with the lease's record: in a field of KEYS.owner; for
-- a share, in users_of_share() of KEYS.shares. The first line is 'left keeper'. `left`: when
-- --min-hold ends for the keeper, which has left; 0 without that; '' if it has not left. `keeper`:
-- the own end of a keeper that renews the lease, until it leaves (U2). Each other line is 'id end
-- since record'.
local MAX_USERS = 16

-- Stands for users whose entries were lost with the record of the lease; not shown.
local UNKNOWN_USER = '?'

-- The users in a stored text, without those that have ended. `left` is nil if the keeper has not
-- left, `keeper` if its end is that of the lease. -> {left, keeper, {id, ends, since, record}, …};
-- or nil and an error
local function parse_users(text, time)
  local left, keeper, lines = string.match(text or '', '^(%d*) ?(%d*)\n?(.*)$')
  local users = {left = tonumber(left), keeper = tonumber(keeper)}
  for line in string.gmatch(lines, '[^\n]+') do
    local user, ends, since, record = string.match(line, '^(%S+) (%d+) (%d+) (.*)$')
    if not user then
      return nil, redis.error_reply(
        'ERR a user of the lease has a newer version: upgrade redlock-cli')
    end
    if tonumber(ends) > time then
      users[#users + 1] =
        {id = user, ends = tonumber(ends), since = tonumber(since), record = record}
    end
  end
  return users
end

-- Like parse_users(), for the lease `id`, which is here. `known` is false if the record of the
-- lease was lost, so there may be others. `is_renewed`: its keeper renews it. `hold` is the end of
-- a hold; once it has passed, the keeper has left (F1). `max_ttl` is nil if it is not known, or
-- only --min-hold keeps the lease.
local function read_users(how, id, time)
  local known, text, hold, max_ttl
  if how == 'exclusive' then
    if not KEYS.owner then return nil, elsewhere() end
    local owner, unread = read_owner()
    if unread then return nil, unread end
    if owner.lease == id then
      known, text, hold, max_ttl = owner.record, owner.users, hold_end(owner), owner.max_ttl
    end
  else
    if not KEYS.shares then return nil, elsewhere() end
    local stored =
      redis.pcall('HMGET', KEYS.shares, id, users_of_share(id), ttl_of_share(id))
    if is_error(stored) then return nil, stored end
    local share = read_share(stored[1])
    known, text, max_ttl = share and share.record, stored[2], stored[3]
    hold = share and hold_end(share)
  end
  local users, unread = parse_users(text, time)
  if not users then return nil, unread end
  users.known, users.hold = known and true or false, hold
  users.is_renewed = known and (number_in(known, WORD.renewed_field) or 0) > 0
  users.max_ttl = known and not is_kept(known) and tonumber(max_ttl) or nil
  if hold and hold <= time then users.left = users.left or hold end
  return users
end

-- Stores them. The caller sets the expiry of KEYS.shares. -> an error or nil
local function write_users(how, id, users)
  local lines = {users.left and decimal(users.left) or ''}
  if users.keeper and users[1] and not users.left then
    lines[1] = ' ' .. decimal(users.keeper)
  end
  for _, user in ipairs(users) do
    lines[#lines + 1] =
      table.concat({user.id, decimal(user.ends), decimal(user.since), user.record}, ' ')
  end
  local text = table.concat(lines, '\n')
  local key, field = KEYS.owner, WORD.users_field
  if how == 'shared' then key, field = KEYS.shares, users_of_share(id) end
  if text == '' then return first_error(redis.pcall('HDEL', key, field)) end
  if how == 'shared' or users.known then
    return first_error(redis.pcall('HSET', key, field, text))
  end
  -- The record was lost; a heal restores the rest.
  return first_error(
    redis.pcall('HSET', key, 'lease', id, field, text),
    redis.pcall('PEXPIRE', key, decimal(math.max(1, redis.call('PTTL', KEYS.lock)))))
end

-- Forgets a user. -> when it had come, or nil
local function remove_user(users, id)
  for i, user in ipairs(users) do
    if user.id == id then return table.remove(users, i).since end
  end
end

-- Adds a user, or moves its end. -> an error or nil
local function put_user(how, id, users, user, ends, record, time)
  local since = remove_user(users, user) or time
  users[#users + 1] = {id = user, ends = ends, since = since, record = record}
  return write_users(how, id, users)
end

-- The longest ttl that was requested for a lease, with this one; math.huge if that is not known, so
-- that nothing is shortened. If the lease ends later, the server's clock was set back (R4).
local function max_requested_ttl(users, ttl)
  return users and users.max_ttl and math.max(users.max_ttl, ttl) or math.huge
end

-- For how long the lease may last from now, at most: for that ttl, or until the last end of its
-- other users, who rely on them.
local function max_life(users, user, ttl, time)
  local life = max_requested_ttl(users, ttl)
  if life == math.huge then return life end
  local last = math.max(users.left or 0, users.hold or 0)
  for _, other in ipairs(users) do
    if other.id ~= user then last = math.max(last, other.ends) end
  end
  return math.max(life, last - time)
end

-- Remembers the longest ttl that is requested for a lease. -> an error or nil
local function raise_max_ttl(how, id, max_ttl, ttl)
  if not max_ttl or ttl <= max_ttl then return end
  local key, field = KEYS.owner, 'ttl'
  if how == 'shared' then key, field = KEYS.shares, ttl_of_share(id) end
  return first_error(redis.pcall('HSET', key, field, decimal(ttl)))
end

-- Moves the end of a hold in its record; nil: it is lifted. -> an error or nil
local function move_hold(how, id, ends)
  local lease = how == 'exclusive' and read_owner()
    or read_share(redis.pcall('HGET', KEYS.shares, id))
  lease.record = with_length(lease.record, ends and ends - tonumber(lease.since))
  return first_error(
    how == 'shared' and write_share(id, lease)
      or redis.pcall('HSET', KEYS.owner, 'record', lease.record))
end

-- Moves the own end of a keeper that has extended its lease, beside users or of a hold, in the
-- record. -> an error or nil
local function move_keeper(how, id, users, ttl, time)
  local failure
  if users.keeper then
    users.keeper = math.max(users.keeper, time + ttl)
    failure = write_users(how, id, users)
  end
  if failure or not users.hold or users.hold >= time + ttl then return failure end
  return move_hold(how, id, time + ttl)
end

-- Appends REPLY.user of the first users to a list.
local function describe_users(described, users, time)
  for _, user in ipairs(users or {}) do
    if #described == MAX_USERS then break end
    if user.id ~= UNKNOWN_USER then
      described[#described + 1] = {math.max(0, time - user.since), user.record}
    end
  end
  return described
end

-- REPLY.user of the first users of these shares, by their ids.
local function describe_users_of_shares(ids, time)
  local fields, described = {}, {}
  for i, id in ipairs(ids) do fields[i] = users_of_share(id) end
  local stored = fields[1] and KEYS.shares and redis.pcall('HMGET', KEYS.shares, unpack(fields))
  for _, text in ipairs(stored or {}) do
    if text then describe_users(described, parse_users(text, time), time) end
  end
  return described
end
