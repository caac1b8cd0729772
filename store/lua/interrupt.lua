#!lua flags=allow-oom
-- interrupt: a worker gives up an attempt that it has entered (drain, run limit); the tool's effect decides the next
-- state.
-- uses: ledger queue flow fence
-- KEYS[1] = root of the namespace
-- ARGV    = call, fence, token (of the delivery), reason, worker, inside_ms (for which its handler may go on, no
--           reconcile before)
-- RETURNS {"queued" | "failed" | "unknown" | "cancelled"} what it has become | {"lost"}
-- INVARIANT the same rule as for a lease that ran out; sent twice it answers the same.
local call, fence = ARGV[1], ARGV[2]
local got = fields(call, 'state', 'fence', 'token')
local before = given_up(call, fence)
if before then
  return { before }
elseif got[1] ~= 'running' or got[2] ~= fence or got[3] ~= ARGV[3] then
  compare_attempt(call, fence, ARGV[3])
  return { 'lost' }
end
if ARGV[6] == '0' then
  redis.call('HSET', record_of(call), 'left', fence) -- its handler has ended
end
local became = lose(call, ARGV[4], ARGV[5])
if became == 'unknown' then
  redis.call('ZADD', root .. 'reconcile:' .. fields(call, 'tool')[1], whole(now + tonumber(ARGV[6])), call)
end
return { give_up(call, fence, became) }
