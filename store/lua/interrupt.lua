#!lua flags=allow-oom
-- interrupt: the worker itself gives up an attempt it has entered (drain, time limit); the effect decides.
-- uses: ledger queue flow
-- KEYS[1] = root of the namespace
-- ARGV    = call key, fence, delivery token, reason, worker
-- RETURNS {"queued" | "failed" | "unknown" | "cancelled"} what it has become | {"lost"}
-- INVARIANT the same rule as for a lease that ran out; sent twice it answers the same.
local call, fence = ARGV[1], ARGV[2]
local got = fields(call, 'state', 'fence', 'token')
local before = given_up(call, fence)
if before then
  return { before }
elseif got[1] ~= 'running' or got[2] ~= fence or got[3] ~= ARGV[3] then
  return { 'lost' }
end
return { give_up(call, fence, lose(call, ARGV[4], ARGV[5])) }
