#!lua flags=allow-oom
-- cancel: cancel a call that has not started, or ask a running one to stop.
-- uses: ledger queue flow fence operator
-- KEYS[1] = root of the namespace
-- ARGV    = call, state (seen, "" for any), fence (seen, "" for any), actor, reason, request_id
-- RETURNS {"cancelled"} | {"requested"} (it runs: outcome not known yet) | {"changed", state, fence} | {"gone"}
-- INVARIANT never "cancelled" while an attempt runs or nobody knows how it ended; the words count attempts before.
local call, request = ARGV[1], ARGV[6]
local before = answered('cancel', call, request)
if before then
  return before
end
local got = fields(call, 'state', 'tool', 'fence')
local off = differs(call, ARGV[2] ~= '' and ARGV[2] or got[1] or '', ARGV[3])
if off then
  return off
end
local event = { op = 'cancel', actor = ARGV[4], tool = got[2], reason = ARGV[5] }
if got[1] == 'running' then
  redis.call('HSET', record_of(call), 'cancel_requested', 1)
  note(call, event)
  local about = fields(call, 'turn_key', 'worker')
  redis.call('PUBLISH', root .. 'wake:' .. about[1], call)
  redis.call('PUBLISH', root .. 'wake:' .. about[2], call) -- its worker asks for its leases at once, and hears it
  return reply('cancel', call, request, 'requested')
elseif got[1] == 'queued' or got[1] == 'held' then
  end_waiting(call, got[1], 'cancelled', event, 'a stop was asked for')
  return reply('cancel', call, request, 'cancelled')
end
return { 'changed', got[1], got[3] or '0' }
