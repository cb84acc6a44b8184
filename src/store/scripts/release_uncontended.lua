-- The usual case: the release of an exclusive lease of a lock that no client waits for. All other
-- cases fall through to release.lua, which describes the arguments and the reply.
if ARGV.by_hand == '0' and ARGV.expire_in == '0' and ARGV.waiter == '' and ARGV.user == ''
  and ARGV.may_have_users == '0' and KEYS.queue
  and not KEYS[NUMBER.partial]
  and redis.pcall('ZCARD', KEYS.queue) == 0 and redis.pcall('ZCARD', KEYS.readers) == 0
  and redis.pcall('GETRANGE', KEYS.lock, 0, NUMBER.last_byte) == ARGV.token then
  return {WORD.released, delete_exclusive(redis.sha1hex(ARGV.token), ARGV.run, now())}
end
