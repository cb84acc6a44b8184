-- Undoes an attempt: deletes an exclusive lease or a share, but no data that belongs to it.
-- Independent of the other scripts. It is sent as text after a release that was sent by digest, in
-- case the server has forgotten the scripts meanwhile (SCRIPT FLUSH). While a cluster moves the
-- keys, it gets only the first key.
-- KEYS: the lock; the readers; the shares. ARGV: token
local value = redis.pcall('GETRANGE', KEYS[1], 0, NUMBER.last_byte)
-- The user may only have the right to GET.
if type(value) == 'table' then value = redis.pcall('GET', KEYS[1]) end
if value == ARGV[1] then redis.call('DEL', KEYS[1]) end
local id = redis.sha1hex(ARGV[1])
if KEYS[2] and redis.pcall('ZREM', KEYS[2], id) == 1 then
  local share = redis.pcall('HGET', KEYS[3], id)
  -- The other shares of a lease that takes several slots: see take_of() and part_id() in
  -- shares.lua.
  local take = type(share) == 'string' and string.match(share, '"' .. WORD.take_field .. '":(%d+)')
  for nth = 2, math.min(tonumber(take) or 1, NUMBER.max_slots) do
    redis.pcall('ZREM', KEYS[2], id .. WORD.part_sign .. nth - 1)
  end
end
return 1
