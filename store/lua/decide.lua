#!lua flags=allow-oom
-- decide: answer one question about a held call: may it run (approval), or is it no repeat (duplicate)? Bound to its
-- idempotency key and to one run, once, in its lifetime.
-- uses: ledger queue flow fence operator
-- KEYS[1] = root of the namespace
-- ARGV    = call, idempotency_key (that was shown), decision ("approve" | "deny"), actor, reason, request_id,
--           shown_reason (for which it was held, "" for any), shown_fence ("" for any)
-- RETURNS {"approved"} | {"denied"} | {"late", state} (its lifetime is over) | {"decided", state, by}
--         | {"mismatch"} (other arguments than the ones shown) | {"changed", state, fence} (or another question)
--         | {"taken", call key, state} (another call has its unique key) | {"gone"}
-- INVARIANT one decision wins for each question; an approval never covers other arguments, another call, the other
--           question or a second run (retry.lua takes it back).
local call, request = ARGV[1], ARGV[6]
local before = answered(ARGV[3], call, request)
if before then
  return before
end
local got = fields(call, 'state', 'reason', 'fp', 'tool', 'approval_until', 'decided_by', 'fence', 'attempt',
  'duplicate_of', 'no_repeat', 'approval_ms', 'follows')
local event = { op = ARGV[3], actor = ARGV[4], tool = got[4], reason = ARGV[5] }
local asked = got[1] == 'held' and (got[2] == 'approval' or got[2] == 'duplicate') and got[2]
if not got[1] then
  if (tonumber(ARGV[8]) or 0) > 0 then
    compare_record(call, nil, 0, tonumber(ARGV[8])) -- it was shown under that fence
  end
  return { 'gone' }
elseif job_of(call, got[3]) ~= ARGV[2] then
  return { 'mismatch' }
elseif got[1] == 'held' and got[12] then
  return { 'taken', got[12], fields(got[12], 'state')[1] or '' }
elseif not asked and got[6] then
  return { 'decided', got[1], got[6] }
elseif got[1] == 'expired' or (asked and tonumber(got[5]) <= now) then
  event.op = 'late_' .. ARGV[3]
  note(call, event)
  return reply(ARGV[3], call, request, 'late', got[1])
elseif not asked or (ARGV[7] ~= '' and ARGV[7] ~= asked) or (ARGV[8] ~= '' and ARGV[8] ~= (got[7] or '0')) then
  return { 'changed', got[1], got[7] or '0' }
end
local has_key = ARGV[3] == 'approve' and unique().take_again(call)
if has_key then
  return { 'taken', has_key, fields(has_key, 'state')[1] }
end
redis.call('HSET', record_of(call), 'decided_by', ARGV[4], 'decided_at', now_text)
if ARGV[3] == 'deny' then
  local how = tonumber(got[8] or '0') > 0 and 'not run again' or not_run(call)
  local why = ARGV[5] == '' and '' or ': ' .. ARGV[5]
  redis.call('HSET', record_of(call), 'settled_by', ARGV[4], 'error', cjson.encode({ code = 'denied',
    message = how .. ': a person denied it' .. why, details = { reason = ARGV[5] },
    effect = effect_so_far(call, tonumber(got[8] or '0')) }))
  transition(call, 'held', 'refused', event)
  return reply(ARGV[3], call, request, 'denied')
end
redis.call('HSET', record_of(call), asked == 'approval' and 'approved' or 'no_repeat', 1)
if asked == 'approval' and got[9] and not got[10] then
  hold_as_duplicate(call, got[4], got[11]) -- it may run, but nobody has said yet that it is not a repeat
  note(call, event)
else
  free(call, event)
end
redis.call('PUBLISH', root .. 'wake:' .. (fields(call, 'turn_key')[1] or ''), call) -- who waits may have shown the question
return reply(ARGV[3], call, request, 'approved')
