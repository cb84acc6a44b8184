-- Gives a lease back to a server that lost it, after a quorum extended it in the same round (R5).
-- ARGV: token, ttl, fence, age, supervised, owner record, mode (x or s), seat or -1
-- -> {'healed'} | {'gone', 1} when it was released by hand meanwhile | {'held', …} | an error
local token, ttl, seat = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[8])
local id, time = redis.sha1hex(token), now()
if type(redis.pcall('ZSCORE', RELEASED, id)) == 'string' then return {'gone', 1} end

local state, value, type_name = standing(time)
if not state then return value end
local last = counter()
local since = time - tonumber(ARGV[4])

if ARGV[7] == 'x' then
  if state == 'shared' or state == 'held' and value ~= token then return describe('held', value, type_name, time) end
  local set = redis.pcall('SET', LOCK, token, 'NX', 'PX', ARGV[2])
  if is_error(set) then return set end
  write_owner(id, ARGV[3], since, ARGV[5], ARGV[6], ttl)
else
  if state == 'held' then return describe('held', value, type_name, time) end
  if seat >= 0 then
    local sitting = redis.call('HGET', SEATS, seat)
    if sitting and sitting ~= id and share_end(sitting, time) then return describe('held', SHARED, nil, time) end
  end
  local failure = add_share(id, ttl, ARGV[3], since, ARGV[5], seat, ARGV[6], time)
  if failure then return failure end
end
if last and last < tonumber(ARGV[3]) then set_counter(tonumber(ARGV[3]), ttl) end
return {'healed'}
