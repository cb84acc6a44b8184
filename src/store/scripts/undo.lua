-- Undoes an attempt: deletes an exclusive lease, or a share, whatever else is known of it.
-- Needs no other script. It is sent as text after a release that was sent by digest, in case the
-- server has forgotten the scripts meanwhile (SCRIPT FLUSH). While a cluster moves the keys, it
-- gets the first key alone.
-- KEYS: the lock; the readers. ARGV: token
local value = redis.pcall('GETRANGE', KEYS[1], 0, NUMBER.last_byte)
-- A user may have the right to GET alone.
if type(value) == 'table' then value = redis.pcall('GET', KEYS[1]) end
if value == ARGV[1] then redis.call('DEL', KEYS[1]) end
if KEYS[2] then redis.pcall('ZREM', KEYS[2], redis.sha1hex(ARGV[1])) end
return 1
