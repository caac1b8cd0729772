#!lua flags=allow-oom
-- defer_reconcile: handlers whose attempts were given up are still at work, so it is too early to ask what they have done.
-- uses: ledger fence
-- KEYS[1] = root of the namespace
-- ARGV    = wait_ms (the least), attempts[call, fence, token]
-- RETURNS number of reconciles that wait
-- INVARIANT no state changes here; only the attempt that left the call unknown is heard.
local waiting = 0
for i = 2, #ARGV, 3 do
  local got = fields(ARGV[i], 'state', 'fence', 'token', 'tool')
  if got[1] == 'unknown' and got[2] == ARGV[i + 1] and got[3] == ARGV[i + 2] then
    redis.call('ZADD', root .. 'reconcile:' .. got[4], 'XX', 'GT', whole(now + tonumber(ARGV[1])), ARGV[i])
    waiting = waiting + 1
  else
    compare_attempt(ARGV[i], ARGV[i + 1], ARGV[i + 2])
  end
end
return waiting
