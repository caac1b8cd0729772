-- progress: a running handler says how far it is; seen by those who wait and by tail.
-- uses: ledger
-- KEYS[1] = root of the namespace
-- ARGV    = call key, fence, fraction (0..1 or ""), message
-- RETURNS "noted" | "lost"
-- INVARIANT changes no state; only the holder of the fence reports.
local got = fields(ARGV[1], 'state', 'fence', 'tool', 'turn_key')
if got[1] ~= 'running' or got[2] ~= ARGV[2] then
  return 'lost'
end
redis.call('HSET', record_of(ARGV[1]), 'progress', ARGV[3], 'progress_message', ARGV[4])
redis.call('XADD', root .. 'events', 'MAXLEN', '~', '100000', '*', 'call', ARGV[1], 'event', cjson.encode({
  at = now, op = 'progress', tool = got[3], fence = ARGV[2], fraction = ARGV[3], reason = ARGV[4] }))
redis.call('PUBLISH', root .. 'wake:' .. got[4], ARGV[1])
return 'noted'
