-- Gives up a place in line, and calls whoever may come in without us.
-- ARGV: our id in line
-- -> {'left'} | an error
local time = now()
drop(ARGV[1])
local state, failure = standing(time)
if not state then return failure end
call_next(state, time)
return {'left'}
