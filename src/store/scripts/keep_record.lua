-- Does for the record of a lease what an extension could not do where KEYS.lock is, because a
-- cluster moves the slot: it remembers the ttl (R4), and moves the end of the keeper beside users
-- (U2), or of a hold (F1). The record, KEYS.owner or KEYS.shares, is the only key of this script,
-- so a cluster always runs it (D1).
-- ARGV: the id of the lease, ttl, whether it is a share (0 or 1)
-- -> 1 | an error
local how = ARGV.shared == '1' and 'shared' or 'exclusive'
local key, ttl, time = KEYS.owner, tonumber(ARGV.ttl), now()
if how == 'shared' then key = KEYS.shares end
local users, unread = read_users(how, ARGV.lease, time)
if not users then return unread end
if not users.known then return 1 end
local failure = raise_max_ttl(how, ARGV.lease, users.max_ttl, ttl)
  or move_keeper(how, ARGV.lease, users, ttl, time)
local rest = redis.pcall('PTTL', key)
if type(rest) == 'number' and rest < ttl then
  failure = failure or first_error(redis.pcall('PEXPIRE', key, decimal(ttl)))
end
return failure or 1
