#!lua flags=allow-oom
-- reconcile_later: a reconcile gave no answer, or it was too early to ask; ask again after a wait.
-- uses: ledger history
-- KEYS[1] = root of the namespace
-- ARGV    = call, wait_ms, heard, counts (0: nobody was asked, nothing is counted or noted)
-- RETURNS 1 | 0 where the call is unknown no longer
-- INVARIANT no state changes here.
local ONE_BY_ONE = 10 -- more answers of one kind in a row are one line, or they would push all else out of the history
local got = fields(ARGV[1], 'state', 'tool', 'asked')
if got[1] ~= 'unknown' then
  return 0
end
redis.call('ZADD', root .. 'reconcile:' .. got[2], whole(now + tonumber(ARGV[2])), ARGV[1])
redis.call('HSET', record_of(ARGV[1]), 'heard', ARGV[3])
if ARGV[4] == '0' then
  redis.call('HINCRBY', record_of(ARGV[1]), 'asked', -1)
  return 1
end
local event = { op = 'reconcile', actor = 'recovery', tool = got[2], reason = ARGV[3] }
note(ARGV[1], event)
if tonumber(got[3] or '0') > ONE_BY_ONE then
  fold(ARGV[1], 1)
end
return 1
