-- Counts a run that did not run its command, until the next run is recorded (L3). Only for users to
-- read: a skip never counts as a run.
-- ARGV: the reason, in one word
-- -> {'counted'} | an error
local time = now()
local stored, unreadable = stored_runs(true)
if not stored then return unreadable end
local head, last, best, skips, kept = read_stored_runs(stored)
local counts = {string.match(skips, LINE.skips)}
if not counts[1] then counts = {'0', decimal(time)} end
counts[LINE.skips.number] = decimal(tonumber(counts[LINE.skips.number]) + 1)
counts[LINE.skips.last] = decimal(time)
counts[LINE.skips.why] = ARGV.why
local life = decimal(math.max(TIME.run_life, tonumber(head[LINE.runs.remember_for])))
return first_error(write_runs(head, last, best, table.concat(counts, ' '), kept, life))
  or {WORD.counted}
