#!lua flags=allow-oom
-- interrupt: the worker itself gives up an attempt it has entered (drain, time limit); the effect decides.
-- uses: ledger flow
-- KEYS[1] = root of the namespace
-- ARGV    = call key, fence, reason, worker
-- RETURNS {"queued" | "failed" | "unknown"} what it has become | {"lost"}
-- INVARIANT the same rule as for a lease that ran out; sent twice it answers "lost" and changes nothing.
local got = fields(ARGV[1], 'state', 'fence')
if got[1] ~= 'running' or got[2] ~= ARGV[2] then
  return { 'lost' }
end
return { lose(ARGV[1], ARGV[3], ARGV[4]) }
