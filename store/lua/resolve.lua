#!lua flags=allow-oom
-- resolve: settle an unknown call, by an operator or by the tool's `reconcile`. An operator may also settle a call that
-- is held since the store went back, after comparing whether it had run.
-- uses: ledger queue flow fence operator
-- KEYS[1] = root of the namespace
-- ARGV    = call, state (seen), fence (seen), operation ("resolve" | "reconcile"), verdict ("succeeded" | "failed"),
--           result (JSON), error (JSON), actor, reason, request_id
-- RETURNS {"resolved", state} | {"changed", state, fence} | {"gone"}
-- INVARIANT only what may have run is resolved, under the fence that was seen; a later outcome is evidence.
local call, request = ARGV[1], ARGV[10]
local answer = answered(ARGV[4], call, request) or differs(call, ARGV[2], ARGV[3])
if answer then
  return answer
end
local is_held_back = ARGV[2] == 'held' and ARGV[4] == 'resolve' and fields(call, 'reason')[1] == 'store_went_back'
if ARGV[2] ~= 'unknown' and not is_held_back then
  return { 'changed', ARGV[2], ARGV[3] }
end
redis.call('HSET', record_of(call), 'result', ARGV[6], 'error', ARGV[7], 'marks', '', 'settled_by', ARGV[8],
  'settled_at', now_text, 'resolved_because', ARGV[9])
redis.call('HDEL', record_of(call), 'may_have_run')
transition(call, ARGV[2], ARGV[5],
  { op = ARGV[4], actor = ARGV[8], tool = fields(call, 'tool')[1], fence = ARGV[3], reason = ARGV[9] })
return reply(ARGV[4], call, request, 'resolved', ARGV[5])
