-- Remembers the ttl of an extension whose server did not have the owner record, because a cluster
-- moves the slot (R4). The record is the only key of this script, so a cluster always runs it (D1).
-- ARGV: the id of the lease, ttl
-- -> 1 | an error
local owner, unread = read_owner()
if unread then return unread end
local max_ttl = owner.lease == ARGV.lease and tonumber(owner.max_ttl)
return raise_max_ttl('exclusive', ARGV.lease, max_ttl, tonumber(ARGV.ttl)) or 1
