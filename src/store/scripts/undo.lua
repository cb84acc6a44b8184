-- Takes back an exclusive lease, or a share, whatever else is known of it. Stands for itself: it goes by its text behind a release that went by
-- digest, should the server have forgotten the scripts meanwhile (SCRIPT FLUSH), and, while a cluster moves the keys, with the first key alone.
-- KEYS: the lock; the readers. ARGV: token
if redis.pcall('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
if KEYS[2] then redis.pcall('ZREM', KEYS[2], redis.sha1hex(ARGV[1])) end
return 1
