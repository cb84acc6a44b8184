-- Leaves or reads the sign that a lease was released after it was asked to stop (R12). While a
-- cluster moves the slot, the tombstones may be elsewhere than KEYS.lock. They are the only key of
-- this script, so a cluster always runs it (D1).
-- ARGV: the id of the lease, whether to leave the sign (0 or 1)
-- -> whether the sign is there (0 or 1) | an error
if ARGV.leaves == '1' then leave_tombstones({ENDED .. ARGV.lease}, nil, TIME.idle_life, now()) end
return has_ended_by_release(ARGV.lease) and 1 or 0
