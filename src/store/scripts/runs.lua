-- Follows prelude.lua: the last runs of a lock, for people and for --once-per. Nothing here decides
-- which client may acquire.
-- KEYS.last is a string of lines:
--   remember_for started fence
--              of the last success (0 0: none); remember_for: how long the string stays, in ms
--   1 fence started ended waited result exit signal record
--              the last run; exit and signal are '-' where there is none
--   the same   the last success, unless that was the last run
-- Of two runs the later one has the larger fence, unless the counter was reset between them. Two
-- things hold for later formats: the string begins with the three numbers, and a line begins with
-- the number of its format and the fence.

-- The string, '' when there is none or the client asks for none; or nil and the error. `lenient`:
-- what is no string is none.
local function stored_runs(lenient)
  local stored = KEYS.last and redis.pcall('GET', KEYS.last)
  if is_error(stored) then
    local is_other_type = string.find(stored.err, 'WRONGTYPE', 1, true)
    if lenient and is_other_type then return '' end
    return nil, stored
  end
  return stored or ''
end

local function fence_of_run(line)
  return tonumber(string.match(line, '^%S+ (%d+) ')) or 0
end

-- The line that begins there, and where the next one begins.
local function line_from(text, first)
  local newline = string.find(text, '\n', first, true) or #text + 1
  return string.sub(text, first, newline - 1), newline + 1
end

-- Records a run: 'remember_for success fence ran ended_ago waited result exit signal', perhaps with
-- the owner record of another lease at the end. What is stored of later runs stays. -> whether this
-- success, or a later one, is recorded
local function record_run(run, record, time)
  local remember_for, success, fence, ran, ended_ago, rest, other = string.match(
    run, '^(%d+) ([01]) (%d+) (%d+) (%d+) (%d+ %S+ %S+ %S+) ?(.*)$')
  local stored = KEYS.last and stored_runs(true)
  if not remember_for or not stored then return false end
  local ended = math.max(0, time - tonumber(ended_ago))
  local started = decimal(math.max(0, ended - tonumber(ran)))
  local owner = other ~= '' and other or record
  if string.find(owner, '\n', 1, true) then owner = string.gsub(owner, '%c', ' ') end
  local line = table.concat({WORD.run_format, fence, started, decimal(ended), rest, owner}, ' ')

  local remembered, best_started, best_fence = string.match(stored, '^(%d+) (%d+) (%d+)')
  local last, best = '', ''
  if remembered then
    local _, after = line_from(stored, 1)
    last, after = line_from(stored, after)
    best = line_from(stored, after)
  else
    remembered, best_started, best_fence = '0', '0', '0'
  end
  local best_at, last_at = tonumber(best_fence), fence_of_run(last)
  if best == '' and last_at == best_at then best = last end
  -- A run of another lease only fills a gap: the account that is here is by this server's clock.
  local lead = tonumber(fence) - (other ~= '' and 1 or 0)
  if other == '' and lead < math.max(best_at, last_at) then
    -- A fence above the counter is from before the counter was reset: that run came before ours.
    local highest = counter(MAX_FENCE)
    if not highest then return false end
    if best_at > highest then best_at = 0 end
    if last_at > highest then last_at = 0 end
  end
  if success == '1' and lead >= best_at then
    best_started, best_fence, best = started, fence, line
  end
  if lead >= last_at then last = line end

  local life = math.max(NUMBER.run_life, tonumber(remembered), tonumber(remember_for))
  life = math.min(life, NUMBER.max_run_life)
  local text = decimal(life) .. ' ' .. best_started .. ' ' .. best_fence .. '\n' .. last
  if best ~= '' and best ~= last then text = text .. '\n' .. best end
  return not is_error(redis.pcall('SET', KEYS.last, text, 'PX', decimal(life)))
end

-- The record of the owner of this exclusive lease, '' when it has none, nil when it is not known.
local function owner_of(id)
  local owner = redis.pcall('HMGET', KEYS.owner, 'lease', 'record')
  return owner[1] == id and (owner[2] or '') or nil
end

-- Deletes the exclusive lease that is here, and records the run that ends with it ('': none): only
-- under our lease, so that a client that acquires later at this server sees it. Deleting comes
-- first, as a server that is out of memory lets a script write once it has. -> 1 if the run is
-- recorded, otherwise 0
local function delete_exclusive(id, run, time)
  local owner = owner_of(id)
  if owner then redis.call('DEL', KEYS.lock, KEYS.owner) else redis.call('DEL', KEYS.lock) end
  return run ~= '' and record_run(run, owner or '', time) and 1 or 0
end
