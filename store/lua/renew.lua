#!lua flags=allow-oom
-- renew: prolong the leases of everything that one process runs, in one step.
-- uses: ledger fence
-- KEYS[1] = root of the namespace
-- ARGV    = lease_ms, attempts[call, fence, token (of the delivery)]
-- RETURNS per call "kept" | "cancel" (kept, and someone asked for a stop) | "lost"
-- INVARIANT accepted while state and fence still match, even past the lease.
local out = {}
for i = 2, #ARGV, 3 do
  local got = fields(ARGV[i], 'state', 'fence', 'cancel_requested', 'token')
  if got[1] == 'running' and got[2] == ARGV[i + 1] and got[4] == ARGV[i + 2] then
    redis.call('ZADD', root .. 'leases', whole(now + tonumber(ARGV[1])), ARGV[i])
    out[#out + 1] = got[3] == '1' and 'cancel' or 'kept'
  else
    compare_attempt(ARGV[i], ARGV[i + 1], ARGV[i + 2])
    out[#out + 1] = 'lost'
  end
end
return out
