-- Leaves the queue, and notifies a waiter that can acquire the lock now that we are gone.
-- ARGV: our waiter id
-- -> {'left'} | an error
local time = now()
local was_first = redis.call('ZRANK', KEYS.queue, ARGV.waiter) == 0
drop(ARGV.waiter)
local state, failure = lock_state(time)
if not state then return failure end
notify_next(state, time)
if was_first then notify_first_of_end(state, time) end
return {WORD.left}
