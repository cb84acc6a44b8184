-- Who holds the lock? Changes nothing.
-- -> {'free'} | {'held', …} | an error
local value, type_name = look()
if is_error(value) then return value end
if not value then return {'free'} end
return describe('held', value, type_name)
