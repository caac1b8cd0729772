#!lua flags=allow-oom
-- settle: store how an attempt ended, under its fence, and take the next call in the same step, where one is asked for.
-- Also the late outcome of an attempt that was given up.
-- uses: ledger leaving record_fields (flow) next_call
-- KEYS[1] = root of the namespace
-- ARGV    = call, fence, token (of the delivery), state ("succeeded" | "failed" | "refused" | "unknown"), result,
--           error, marks, worker, raised (the exception; it, result, error and marks are JSON, "" where there is none),
--           next[queue, token, slot (of the worker, its name), lease_ms, seen_fence, bar_mutating] (as for claim; one)
-- RETURNS {"settled", state, nothing or the next call as {job id, fence, fields by record.RUN_FIELDS}, nothing or the
--           ms until a call may start that was passed over for its rate}
--         | {"late", state} (kept as evidence, nothing overwritten) | {"gone"} (likewise kept, a week)
-- INVARIANT the first outcome stands; a worker whose fence has passed can add evidence and nothing else. The same
--           outcome again may change its marks (whether enough replicas have it), and writes, so that a WAIT behind it
--           waits. It gets the next call that it got before, under the same claim, or none once that call has ended.
-- The rows of the state table that settle makes; the last one is the late success of a call that waits to run again.
local ROWS = {
  ['running succeeded'] = true, ['running failed'] = true, ['running refused'] = true, ['running unknown'] = true,
  ['unknown succeeded'] = true, ['unknown failed'] = true,
  ['queued succeeded'] = true,
}
local GONE_KEPT_S = 7 * 86400
local call, fence, token, to = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local me = ARGV[8] .. '/' .. token
local got = fields(call, 'state', 'fence', 'token', 'tool', 'attempt', 'history', 'answers', 'scope', 'tenant', 'turn_key')
local from, same = got[1], got[2] == fence and got[3] == token
local evidence, exception = root .. 'evidence:' .. call, ARGV[9] ~= '' and cjson.decode(ARGV[9]) or nil

local function keep_evidence()
  redis.call('RPUSH', evidence, cjson.encode({
    at = now, fence = fence, worker = ARGV[8], state = to, result = ARGV[5], error = ARGV[6] }))
  redis.call('LTRIM', evidence, -20, -1)
end

local function keep_of_a_call_that_is_gone()
  flow().compare_attempt(call, fence, token)
  local last = redis.call('LINDEX', evidence, -1)
  if not last or cjson.decode(last).fence ~= fence then
    keep_evidence() -- for the person who has to settle it, once it is submitted again
    redis.call('EXPIRE', evidence, GONE_KEPT_S)
  end
end

local function keep_what_is_late()
  if fields(call, 'evidence_by')[1] ~= me .. '/' .. to then
    redis.call('HSET', record_of(call), 'evidence_by', me .. '/' .. to)
    keep_evidence()
    flow().note(call, { op = 'evidence', actor = ARGV[8], tool = got[4], fence = fence, reason = to, exception = exception })
  end
end

-- The way of a call that is claimed once and ends: what else may follow from that is asked for in one command.
local function store_usual_outcome(event)
  local tool, tenant, more = got[4], got[9] or '', to == 'succeeded' and { 'result', ARGV[5] } or { 'error', ARGV[6] }
  redis.call('ZREM', root .. 'leases', call)
  local follows_more = redis.call('EXISTS', root .. 'slots:tool:' .. tool, root .. 'slots:tenant:' .. tenant,
    root .. 'followers:' .. call, root .. 'argument_errors:' .. got[8]) > 0
  if follows_more then
    flow().leave_limits(call, tool, tenant)
  end
  if ARGV[7] ~= '' or string.sub(token, -1) == '~' then -- such a claim has left marks
    more[3], more[4] = 'marks', ARGV[7]
  end
  move_as_usual(call, 'running', to, event, more)
  if follows_more then
    flow().on_rest(call, to, tool, { is_shown_by_worker = true, scope = got[8], turn_key = got[10] })
  else
    redis.call('PUBLISH', root .. 'wake:' .. got[10], call)
  end
end

local function store_outcome()
  local event = { op = 'settle', actor = ARGV[8], tool = got[4], fence = fence, attempt = got[5],
    exception = exception }
  local is_of_interest = exception or got[6] or got[7] -- lanes and unique keys have a history
  if from == 'running' and (to == 'succeeded' or to == 'failed') and not is_of_interest then
    return store_usual_outcome(event)
  end
  if from ~= 'running' then
    event.reason = 'late'
  end
  if to == 'unknown' then
    redis.call('HSET', record_of(call), 'left', fence) -- the worker says so itself: its handler has ended
  elseif to == 'refused' then
    flow().write_history_out(call) -- with the number that this attempt has had
    redis.call('HINCRBY', record_of(call), 'attempt', -1) -- never entered: it does not count
    flow().rates().give_start_back(got[4])
    flow().may_have_run(call)
  end
  flow().transition(call, from, to, event, { 'result', ARGV[5], 'error', ARGV[6], 'marks', ARGV[7], 'settled_by', me,
    'settled_at', now_text })
end

local function settled(state, is_repeat)
  local queue, its_token, slot, lease, seen, bars_mutating = unpack(ARGV, 10)
  if not queue then
    return { 'settled', state }
  end
  local mine = { queue = queue, token = its_token, slot = slot, worker = ARGV[8], lease = tonumber(lease),
    seen = tonumber(seen), bars_mutating = bars_mutating == '1' }
  local job, run, due
  if is_repeat then
    job, run = taken_before(mine)
  end
  if not job then
    job, run, due = take_next(mine)
  end
  return { 'settled', state, job and run[1] == 'run' and { job, run[2], run[3] }, due }
end

if not from then
  keep_of_a_call_that_is_gone()
  return { 'gone' }
end
if same and from == to and (to == 'unknown' or (fields(call, 'settled_by')[1] or me) == me) then
  redis.call('HSET', record_of(call), 'marks', ARGV[7])
  if to == 'unknown' then
    redis.call('HSET', record_of(call), 'left', fence) -- given up before, its handler has ended now
  end
  return settled(from, true)
end
if not same then
  flow().compare_attempt(call, fence, token)
end
if not (same and ROWS[from .. ' ' .. to]) then
  keep_what_is_late()
  return { 'late', from }
end
return in_batch(function()
  store_outcome()
  return settled(to, false)
end)
