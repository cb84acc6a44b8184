-- Follows tombstones.lua: the last runs of a lock, for users and for --once-per. They do not affect
-- which client may acquire.
-- KEYS.last is a string with the lines that core/protocol.txt describes.
-- Of two runs, the later one has the larger fence, unless the counter was reset between them.

-- The string; '' if there is none, or the client did not request it; or nil and the error.
-- `lenient`: a key of another type counts as none.
local function stored_runs(lenient)
  local stored = KEYS.last and redis.pcall('GET', KEYS.last)
  if lenient and is_wrong_type(stored) then return '' end
  if is_error(stored) then return nil, stored end
  return stored or ''
end

-- The text without the kept runs, which are most of it and only shown by `status --runs`.
local function without_kept(text)
  return string.match(text, '^[^\n]*\n?[^\n]*\n?[^\n]*\n?[^\n]*')
end

-- Splits the text into the fields of the first line, the next three lines, and all others ('' if
-- there are none); nil if the first line has another form.
local function read_runs(text)
  local head = {string.match(text, LINE.runs)}
  if not head[1] then return nil end
  local last, best, skips, behind =
    string.match(text, '^[^\n]*\n?([^\n]*)\n?([^\n]*)\n?([^\n]*)\n?()')
  return head, last, best, skips, string.sub(text, behind)
end

-- Like read_runs(), for the stored text; if its form is unknown, it counts as empty.
local function read_stored_runs(stored)
  local head, last, best, skips, kept = read_runs(stored)
  if head then return head, last, best, skips, kept end
  return {'0', '0', '0'}, '', '', '', ''
end

local function write_runs(head, last, best, skips, kept, life)
  local lines = {table.concat(head, ' '), last, best ~= last and best or '', skips, kept}
  return redis.pcall('SET', KEYS.last, table.concat(lines, '\n'), 'PX', life)
end

local function fence_of_run(line)
  local begin = {string.match(line, LINE.any_run)}
  return tonumber(begin[LINE.any_run.fence]) or 0
end

-- Adds the run of the lease `id` to the lines of kept runs. Since a release may be repeated (L3),
-- it replaces a line with the same id; otherwise it comes first. Other lines are not parsed, which
-- would take as long as the rest of a release.
-- -> the lines, and whether the run is new
local function keep_run(kept, id, line)
  local text, own = '\n' .. kept, '\n' .. id .. ' ' .. line
  local from = string.find(text, '\n' .. id .. ' ', 1, true)
  if from then
    local behind = string.find(text, '\n', from + 1, true) or #text + 1
    text = string.sub(text, 1, from - 1) .. own .. string.sub(text, behind)
  else
    text = kept == '' and own or own .. text
  end
  local ends, count = 0, 0
  while ends < #text and count < NUMBER.kept_runs do
    local next_end = (string.find(text, '\n', ends + 2, true) or #text + 1) - 1
    if next_end > NUMBER.max_kept_bytes then break end
    ends, count = next_end, count + 1
  end
  return string.sub(text, 2, ends), not from
end

-- Records a run, in the form in which a release sends it. `record` is the owner record of the lease
-- `id`. The data of later runs is kept. -> whether this success, or a later one, is recorded
local function record_run(brought, id, record, time)
  local ending, line = read_runs(brought)
  local run = {string.match(line or '', LINE.run)}
  local stored = KEYS.last and stored_runs(true)
  if not run[1] or not stored then return false end
  run[LINE.run.started] = decimal(math.max(0, time - tonumber(run[LINE.run.started])))
  run[LINE.run.ended] = decimal(math.max(0, time - tonumber(run[LINE.run.ended])))
  local is_of_another = run[LINE.run.record] ~= ''
  if not is_of_another then run[LINE.run.record] = record end
  line = table.concat(run, ' ')
  -- A foreign client may have written an owner record with line breaks.
  if string.find(line, '\n', 1, true) then line = string.gsub(line, '\n', ' ') end

  local head, last, best, skips, kept = read_stored_runs(stored)
  local best_at, last_at = tonumber(head[LINE.runs.fence]), fence_of_run(last)
  if best == '' and last_at == best_at then best = last end
  -- A run of another lease only fills a gap: an account that is already here has the times of this
  -- server's clock.
  local lead = tonumber(run[LINE.run.fence]) - (is_of_another and 1 or 0)
  if not is_of_another and lead < math.max(best_at, last_at) then
    -- A fence above the counter is from before a reset of the counter, so its run came before ours.
    local highest = counter(MAX_FENCE)
    if not highest then return false end
    if best_at > highest then best_at = 0 end
    if last_at > highest then last_at = 0 end
  end
  local is_success = ending[LINE.runs.fence] ~= '0'
  if is_success and lead >= best_at then
    head[LINE.runs.started] = run[LINE.run.started]
    head[LINE.runs.fence] = run[LINE.run.fence]
    best = line
  end
  local is_new = is_of_another
  if not is_of_another then
    -- The last run is not kept yet if another lease passed it on.
    if kept == '' and last ~= '' then kept = keep_run('', '-', last) end
    kept, is_new = keep_run(kept, id, line)
  end
  if lead >= last_at then
    if is_new then skips = '' end
    last = line
  end

  local life = math.max(
    TIME.run_life, tonumber(head[LINE.runs.remember_for]),
    tonumber(ending[LINE.runs.remember_for]))
  life = decimal(math.min(life, TIME.max_run_life))
  head[LINE.runs.remember_for] = life
  return not is_error(write_runs(head, last, best, skips, kept, life))
end

-- Deletes the exclusive lease that is here, records the run that ends with it ('': none), and
-- leaves a sign for `stop`. All happen in one script, so a client that acquires later at this
-- server sees the run. Deleting comes first, as a server that is out of memory allows writes after
-- it. -> 1 if the run is recorded, otherwise 0; and NUMBER.sign_is_due if the sign is not left, or
-- nil
local function delete_exclusive(id, run, time)
  local owner = read_owner()
  local is_ours, sign = owner.lease == id, nil
  if is_ours then
    redis.call('DEL', KEYS.lock, KEYS.owner)
    sign = leave_end(id, owner.record, time)
  else
    redis.call('DEL', KEYS.lock)
    -- Elsewhere, the record may have a stop request.
    if not KEYS.owner then sign = NUMBER.sign_is_due end
  end
  local record = is_ours and owner.record or ''
  return run ~= '' and record_run(run, id, record, time) and 1 or 0, sign
end
