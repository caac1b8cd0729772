#!lua flags=allow-oom
-- ask_later: a read-back could not tell; ask again after a wait.
-- uses: ledger
-- KEYS[1] = root of the namespace
-- ARGV    = call key, wait in ms, what was heard
-- RETURNS 1 | 0 where the call is unknown no longer
-- INVARIANT no state changes here.
local got = fields(ARGV[1], 'state', 'tool')
if got[1] ~= 'unknown' then
  return 0
end
redis.call('ZADD', root .. 'readback:' .. got[2], whole(now + tonumber(ARGV[2])), ARGV[1])
note(ARGV[1], { op = 'read_back', actor = 'recovery', tool = got[2], reason = ARGV[3] })
return 1
