#!lua flags=allow-oom
-- watermark: raise or lower the flag that stops admission, by how much memory the server uses.
-- uses: ledger
-- KEYS[1] = root of the namespace
-- ARGV    = bytes used, bytes allowed (0: no limit), raise at this many per mille, lower below this many
-- RETURNS 1 where the flag stands now, else 0
-- INVARIANT between the two marks the flag stays as it is; it stops new calls and nothing else.
local used, allowed = tonumber(ARGV[1]), tonumber(ARGV[2])
local filled = allowed > 0 and used * 1000 / allowed or 0
if filled >= tonumber(ARGV[3]) then
  redis.call('HSETNX', root .. 'flags', 'full', whole(now))
elseif filled < tonumber(ARGV[4]) then
  redis.call('HDEL', root .. 'flags', 'full')
end
return redis.call('HEXISTS', root .. 'flags', 'full')
