-- progress: a running handler reports its progress, for waiting harnesses and `tail`.
-- uses: ledger fence
-- KEYS[1] = root of the namespace
-- ARGV    = call, fence, token (of the delivery), fraction (0..1 or ""), message
-- RETURNS "noted" | "lost"
-- INVARIANT changes no state; only the holder of the fence reports.
local got = fields(ARGV[1], 'state', 'fence', 'tool', 'turn_key', 'token')
if got[1] ~= 'running' or got[2] ~= ARGV[2] or got[5] ~= ARGV[3] then
  compare_attempt(ARGV[1], ARGV[2], ARGV[3])
  return 'lost'
end
redis.call('HSET', record_of(ARGV[1]), 'progress', ARGV[4], 'progress_message', ARGV[5])
redis.call('XADD', root .. 'events', 'MAXLEN', '~', '100000', '*', 'call', ARGV[1], 'event', cjson.encode({
  at = now, op = 'progress', tool = got[3], fence = ARGV[2], fraction = ARGV[4], reason = ARGV[5] }))
redis.call('PUBLISH', root .. 'wake:' .. got[4], ARGV[1])
return 'noted'
