-- accept_call: an operator has compared one call that is held since the store went back; it may be claimed again, while
-- others stay held.
-- uses: ledger queue flow fence operator
-- KEYS[1] = root of the namespace
-- ARGV    = call, state (seen), fence (seen), actor, reason, request_id
-- RETURNS {"freed"} | {"changed", state, fence} | {"gone"}
-- INVARIANT the flag stands; the decision counts for this call and this step back alone.
local call, request = ARGV[1], ARGV[6]
local answer = answered('accept', call, request) or differs(call, ARGV[2], ARGV[3])
if answer then
  return answer
end
local got = fields(call, 'reason', 'tool')
if ARGV[2] ~= 'held' or got[1] ~= 'store_went_back' then
  return { 'changed', ARGV[2], ARGV[3] }
end
local since = redis.call('HGET', root .. 'flags', 'went_back')
if since then
  redis.call('HSET', record_of(call), 'loss_accepted', since)
end
free(call, { op = 'free', actor = ARGV[4], tool = got[2], reason = ARGV[5] })
return reply('accept', call, request, 'freed')
