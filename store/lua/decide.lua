#!lua flags=allow-oom
-- decide: approve or deny a call that is held for approval or as a possible duplicate; bound to its idempotency
-- key, once, in its lifetime.
-- uses: ledger queue flow operator
-- KEYS[1] = root of the namespace
-- ARGV    = call key, idempotency key that was shown, "approve" | "deny", actor, reason, request id
-- RETURNS {"approved"} | {"denied"} | {"late", state} (its lifetime is over) | {"decided", state, by}
--         | {"mismatch"} (other arguments than the ones shown) | {"changed", state} | {"gone"}
-- INVARIANT one decision wins; an approval never covers other arguments, another call or a second run.
local call, request = ARGV[1], ARGV[6]
local before = answered(ARGV[3], call, request)
if before then
  return before
end
local got = fields(call, 'state', 'reason', 'ikey', 'tool', 'approval_until', 'decided_by')
local event = { op = ARGV[3], actor = ARGV[4], tool = got[4], reason = ARGV[5] }
local for_a_person = got[1] == 'held' and (got[2] == 'approval' or got[2] == 'duplicate')
if not got[1] then
  return { 'gone' }
elseif got[3] ~= ARGV[2] then
  return { 'mismatch' }
elseif got[6] then
  return { 'decided', got[1], got[6] }
elseif got[1] == 'expired' or (for_a_person and tonumber(got[5]) <= now) then
  event.op = 'late_' .. ARGV[3]
  note(call, event)
  return reply(ARGV[3], call, request, 'late', got[1])
elseif not for_a_person then
  return { 'changed', got[1] }
end
redis.call('HSET', record_of(call), 'decided_by', ARGV[4], 'decided_at', whole(now))
if ARGV[3] == 'deny' then
  local why = ARGV[5] == '' and '' or ': ' .. ARGV[5]
  redis.call('HSET', record_of(call), 'settled_by', ARGV[4], 'error', cjson.encode({ code = 'denied',
    message = 'not run: a person denied it' .. why, details = { reason = ARGV[5] } }))
  transition(call, 'held', 'refused', event)
  return reply(ARGV[3], call, request, 'denied')
end
free(call, event)
return reply(ARGV[3], call, request, 'approved')
