#!lua flags=allow-oom
-- begin: the handler says that from here on its effect may have started.
-- uses: ledger history fence
-- KEYS[1] = root of the namespace
-- ARGV    = call, fence, token (of the delivery)
-- RETURNS "begun" | "cancel" (nothing written: a stop was asked for before the effect) | "lost"
-- INVARIANT once begun is written, no recovery runs a mutating call again; "lost" flags a store that has lost the claim.
--           Written also when it comes again, so that a WAIT behind it waits for this write.
local got = fields(ARGV[1], 'state', 'fence', 'begun', 'cancel_requested', 'tool', 'attempt', 'token')
if got[1] ~= 'running' or got[2] ~= ARGV[2] or got[7] ~= ARGV[3] then
  compare_attempt(ARGV[1], ARGV[2], ARGV[3])
  return 'lost'
elseif got[3] == '1' then
  redis.call('HSET', record_of(ARGV[1]), 'begun', 1)
  return 'begun'
elseif got[4] == '1' then
  return 'cancel'
end
redis.call('HSET', record_of(ARGV[1]), 'begun', 1, 'begun_at', now_text)
note(ARGV[1], { op = 'begin', tool = got[5], fence = ARGV[2], attempt = got[6] })
return 'begun'
