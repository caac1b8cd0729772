#!lua flags=allow-oom
-- settle: store how an attempt ended, under its fence. Also the late outcome of an attempt that was given up.
-- uses: ledger queue flow fence
-- KEYS[1] = root of the namespace
-- ARGV    = call, fence, token (of the delivery), state ("succeeded" | "failed" | "refused" | "unknown"), result,
--           error, marks, worker, raised (the exception; it, result, error and marks are JSON, "" where there is none)
-- RETURNS {"settled", state} | {"late", state} (kept as evidence, nothing overwritten) | {"gone"} (likewise kept, a
-- week)
-- INVARIANT the first outcome stands; a worker whose fence has passed can add evidence and nothing else. The same
-- outcome again may change its marks (whether enough replicas have it), and writes, so that a WAIT behind it waits. The
-- rows of the state table that settle makes; the last one is the late success of a call that waits to run again.
local ROWS = {
  ['running succeeded'] = true, ['running failed'] = true, ['running refused'] = true, ['running unknown'] = true,
  ['unknown succeeded'] = true, ['unknown failed'] = true,
  ['queued succeeded'] = true,
}
local GONE_KEPT_S = 7 * 86400
local call, fence, token, to = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local got = fields(call, 'state', 'fence', 'token', 'tool', 'attempt', 'settled_by', 'evidence_by')
local from = got[1]
local evidence = root .. 'evidence:' .. call
local function keep_evidence()
  redis.call('RPUSH', evidence, cjson.encode({
    at = now, fence = fence, worker = ARGV[8], state = to, result = ARGV[5], error = ARGV[6] }))
  redis.call('LTRIM', evidence, -20, -1)
end

if not from then
  compare_attempt(call, fence, token)
  local last = redis.call('LINDEX', evidence, -1)
  if not last or cjson.decode(last).fence ~= fence then
    keep_evidence() -- for the person who has to settle it, once it is submitted again
    redis.call('EXPIRE', evidence, GONE_KEPT_S)
  end
  return { 'gone' }
end
local me = ARGV[8] .. '/' .. token
local same = got[2] == fence and got[3] == token
if same and from == to and (got[6] == me or to == 'unknown') then
  redis.call('HSET', record_of(call), 'marks', ARGV[7])
  if to == 'unknown' then
    redis.call('HSET', record_of(call), 'left', fence) -- given up before, its handler has ended now
  end
  return { 'settled', from }
end
if not same then
  compare_attempt(call, fence, token)
end
if not (same and ROWS[from .. ' ' .. to]) then
  if got[7] ~= me .. '/' .. to then
    redis.call('HSET', record_of(call), 'evidence_by', me .. '/' .. to)
    keep_evidence()
    note(call, { op = 'evidence', actor = ARGV[8], tool = got[4], fence = fence, reason = to,
      exception = ARGV[9] ~= '' and cjson.decode(ARGV[9]) or nil })
  end
  return { 'late', from }
end
local event = { op = 'settle', actor = ARGV[8], tool = got[4], fence = fence, attempt = got[5],
  exception = ARGV[9] ~= '' and cjson.decode(ARGV[9]) or nil }
if from ~= 'running' then
  event.reason = 'late'
end
if to == 'unknown' then
  redis.call('HSET', record_of(call), 'left', fence) -- the worker says so itself: its handler has ended
elseif to == 'refused' then
  redis.call('HINCRBY', record_of(call), 'attempt', -1) -- never entered: it does not count
  rates().give_start_back(got[4])
  may_have_run(call)
end
transition(call, from, to, event, { 'result', ARGV[5], 'error', ARGV[6], 'marks', ARGV[7], 'settled_by', me,
  'settled_at', whole(now) })
return { 'settled', to }
