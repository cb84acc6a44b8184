-- Sends waiters away: those with this ticket or an earlier one give up (Q12).
-- ARGV: the ticket ('': send no waiter away, and report on all), the request, a JSON object
-- -> {'dismissed', time, the largest ticket that is known or '', how many of these waiters are in
--     the queue, the records of the first MOST of them} | an error
local MOST = 16
local refused = refusal_of_writes()
if refused then return refused end
local time, ticket, known = now(), tonumber(ARGV.ticket), last_dismissal()
if ticket and ticket > known then
  local set =
    redis.pcall('HSET', KEYS.waiters, DISMISSED, decimal(ticket) .. ' ' .. ARGV.request)
  if is_error(set) then return set end
  redis.call('PEXPIRE', KEYS.waiters, TIME.newest_life)
end

local largest, queued, records = known, 0, {}
local entries = redis.call('ZRANGE', KEYS.queue, 0, -1, 'WITHSCORES')
for i = 1, #entries, 2 do
  local its_ticket, entry = ticket_in(tonumber(entries[i + 1])), living(entries[i], time)
  largest = math.max(largest, its_ticket)
  local is_concerned = entry and (not ticket or its_ticket <= ticket)
  if is_concerned and not (ticket and deliver(entry, WORD.recheck) == false) then
    queued = queued + 1
    local is_shown = queued <= MOST and not entry.opaque
    if is_shown then records[#records + 1] = shown_record(entry.record) end
  end
end
largest = math.max(largest, newest_superseder() or 0)
return {WORD.dismissed, decimal(time), largest > 0 and decimal(largest) or '', queued, records}
