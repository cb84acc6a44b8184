-- Who holds the lock, and who waits? Changes nothing.
-- ARGV: the id of a lease; if it has a share, that share is described in the place of all
-- -> {'free', line} | {'held', …, line} | an error
--    line: {how many wait, {{mode, how long already, record}, …}, how many shares, {as `held` with a slot behind, …}}; of each the first ones
local MOST = 16
local time = now()
local state, value, type_name = standing(time)
if not state then return value end

local waiters = {}
for _, id in ipairs(redis.call('ZRANGE', QUEUE, 0, MOST - 1)) do
  local entry = entry_of(id)
  if not is_over(entry, time) and not entry.opaque then waiters[#waiters + 1] = {entry.mode, math.max(0, time - entry.since), entry.record} end
end
local shares = {}
if state == 'shared' then
  local ends = redis.call('ZRANGEBYSCORE', READERS, '(' .. decimal(time), '+inf', 'WITHSCORES', 'LIMIT', 0, MOST)
  for i = 1, #ends, 2 do shares[#shares + 1] = describe_share('share', ends[i], tonumber(ends[i + 1]), time) end
end
local line = {redis.call('ZCARD', QUEUE), waiters, redis.call('ZCOUNT', READERS, '(' .. decimal(time), '+inf'), shares}

if state == 'free' then return {WORD.free, line} end
local ends = state == 'shared' and ARGV.share ~= '' and share_end(ARGV.share, time)
local holder = ends and describe_share(WORD.held, ARGV.share, ends, time) or describe(WORD.held, value, type_name, time)
holder[REPLY.holder.behind] = line
return holder
