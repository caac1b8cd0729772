#!lua flags=allow-oom
-- follow: the part of recovery that goes on where calls that follow another one by a unique key were too many for the
-- script that has moved it.
-- uses: ledger queue flow
-- KEYS[1] = root of the namespace
-- ARGV    = most (calls to move in this step)
-- RETURNS {number of calls that were moved or told, 1 where there are more}
-- INVARIANT a call that follows another gets one outcome, that of the call that has the key by then.
local unfinished, most, told = root .. 'unique_unfinished', tonumber(ARGV[1]), 0
for _ = 1, most do
  local found = redis.call('ZRANGE', unfinished, 0, 0, 'WITHSCORES')
  if not found[1] or told >= most then
    break
  end
  told = told + following().advance(found[1], found[2])
end
return { told, redis.call('EXISTS', unfinished) }
