-- The usual case: an exclusive lease of a lock that no client holds, shares or waits for. All other
-- cases fall through to acquire.lua, which describes the arguments and the reply.
if ARGV.mode == WORD.alone and ARGV.waiter == '' and ARGV.supersedes == '0'
  and ARGV.wants_runs == '0' and not KEYS[NUMBER.partial]
  and redis.pcall('PTTL', KEYS.lock) == -2 and redis.pcall('ZCARD', KEYS.readers) == 0
  and redis.pcall('ZCARD', KEYS.queue) == 0 then
  local id, time = redis.sha1hex(ARGV.token), now()
  local fence, failure, cannot_publish =
    grant_exclusive(ARGV.token, id, tonumber(ARGV.ttl), ARGV.supervised, ARGV.record, time)
  if not fence then return failure end

  return {WORD.granted, fence, id, '', queue_reply(time, cannot_publish), ''}
end
