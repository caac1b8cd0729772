-- retry: run a failed or unknown call again, by an operator's decision. Attempts and deadline start again.
-- uses: ledger queue flow fence operator
-- KEYS[1] = root of the namespace
-- ARGV    = call, state (seen), fence (seen), operation ("retry" | "reconcile"), actor, reason, request_id, #job, job[]
--           (the job hash as field, value, ...)
-- RETURNS {"queued"} | {"held"} (as a duplicate: asked again) | {"taken", call key, state} (another call has its
--         unique key) | {"changed", state, fence} | {"gone"}
-- INVARIANT compare-and-set: two operators who saw the same call cause one run. What a person has approved was the run
--           before: nothing of it covers this one. (The worker that claims it asks whether it may run.)
local call, request = ARGV[1], ARGV[7]
local answer = answered(ARGV[4], call, request) or differs(call, ARGV[2], ARGV[3])
if answer then
  return answer
elseif ARGV[2] ~= 'unknown' and (ARGV[2] ~= 'failed' or ARGV[4] == 'reconcile') then
  return { 'changed', ARGV[2], ARGV[3] }
elseif fields(call, 'forgotten')[1] then
  return { 'gone' }
end
local has_key = unique().take_again(call)
if has_key then
  return { 'taken', has_key, fields(has_key, 'state')[1] }
end
local got = fields(call, 'fp', 'queue', 'tool', 'attempt', 'max_attempts', 'lanes', 'duplicate_of', 'approval_ms',
  'error', 'may_have_run')
local has_no_effect = got[9] and got[9] ~= '' and cjson.decode(got[9]).effect == 'none' and not got[10]
local job = rq .. 'job:' .. job_of(call, got[1])
redis.call('HDEL', job, 'worker_name') -- of an attempt that is over
redis.call('HSET', job, 'origin', space .. '.' .. got[2], 'description', got[3], unpack(ARGV, 9, 8 + tonumber(ARGV[8])))
local seq = redis.call('INCR', root .. 'admissions')
each(got[6], function(lane)
  redis.call('ZADD', root .. 'lane:' .. lane, 'NX', seq, call)
end)
redis.call('HDEL', record_of(call), 'deadline_at', 'settled_by', 'settled_at', 'cancel_requested', 'result', 'error', 'marks',
  'deadline_left', 'progress', 'progress_message', 'asked', 'heard', 'not_started',
  'approved', 'no_repeat', 'decided_by', 'decided_at')
if not has_no_effect then
  redis.call('HSET', record_of(call), 'ran_before', 1)
end
redis.call('HSET', record_of(call), 'attempt_limit', whole(tonumber(got[4] or '0') + tonumber(got[5])))
transition(call, ARGV[2], 'queued',
  { op = ARGV[4], actor = ARGV[5], tool = got[3], fence = ARGV[3], reason = ARGV[6] })
if got[7] then
  transition(call, 'queued', 'held', { op = 'claim', actor = ARGV[5], tool = got[3], reason = 'duplicate' })
  hold_as_duplicate(call, got[3], got[8])
  return reply(ARGV[4], call, request, 'held')
end
enqueue(call, 0)
return reply(ARGV[4], call, request, 'queued')
