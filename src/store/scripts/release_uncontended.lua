-- The usual case: the end of an exclusive lease, and no client waits for the lock. Anything else
-- falls through to release.lua, which describes arguments and reply.
if ARGV.by_hand == '0' and ARGV.expire_in == '0' and ARGV.waiter == '' and KEYS.queue
  and not KEYS[NUMBER.partial]
  and redis.pcall('ZCARD', KEYS.queue) == 0 and redis.pcall('ZCARD', KEYS.readers) == 0
  and redis.pcall('GETRANGE', KEYS.lock, 0, NUMBER.last_byte) == ARGV.token then
  return {WORD.released, delete_exclusive(redis.sha1hex(ARGV.token), ARGV.run, now())}
end
