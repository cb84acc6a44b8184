-- Counts a run that did not run its command, until the next run is recorded (L3): for people, and
-- so never taken for a run.
-- ARGV: why, in one word
-- -> {'counted'} | an error
local time = now()
local stored, unreadable = stored_runs(true)
if not stored then return unreadable end
local head, last, best, skips, kept = read_stored_runs(stored)
local told = {string.match(skips, LINE.skips)}
if not told[1] then told = {'0', decimal(time)} end
told[LINE.skips.number] = decimal(tonumber(told[LINE.skips.number]) + 1)
told[LINE.skips.last] = decimal(time)
told[LINE.skips.why] = ARGV.why
local life = decimal(math.max(TIME.run_life, tonumber(head[LINE.runs.remember_for])))
return first_error(write_runs(head, last, best, table.concat(told, ' '), kept, life))
  or {WORD.counted}
