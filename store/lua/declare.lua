#!lua flags=allow-oom
-- declare: the worker's tool is stricter than the one that the call was admitted for; the stricter declaration counts
-- from here on.
-- uses: ledger history fence
-- KEYS[1] = root of the namespace
-- ARGV    = call, fence, token (of the delivery), effect, begins (1 | 0)
-- RETURNS "declared" | "lost"
-- INVARIANT written before the handler is entered, so that no recovery decides by what an older tool declared.
local got = fields(ARGV[1], 'state', 'fence', 'tool', 'attempt', 'token', 'effect')
if got[1] ~= 'running' or got[2] ~= ARGV[2] or got[5] ~= ARGV[3] then
  compare_attempt(ARGV[1], ARGV[2], ARGV[3])
  return 'lost'
end
redis.call('HSET', record_of(ARGV[1]), 'effect', ARGV[4], 'begins', ARGV[5])
if got[6] ~= ARGV[4] and tonumber(got[4]) > 1 then
  redis.call('HSET', record_of(ARGV[1]), 'ran_before', 1) -- while it was no mutating call, attempts could be repeated
end
note(ARGV[1], { op = 'declare', actor = 'worker', tool = got[3], fence = ARGV[2], attempt = got[4], reason = ARGV[4] })
return 'declared'
