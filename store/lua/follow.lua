#!lua flags=allow-oom
-- follow: the part of recovery that goes on where calls that follow another one by a unique key were too many for the
-- script that has moved it.
-- uses: ledger queue flow
-- KEYS[1] = root of the namespace
-- ARGV    = most (calls to move in this step)
-- RETURNS {number of calls that were moved or told, 1 where there are more}
-- INVARIANT a call that follows another gets one outcome, that of the call that has the key by then. A step copies a
--           bounded amount of results.
local unfinished, most, told, bytes = root .. 'unique_unfinished', tonumber(ARGV[1]), 0, 0
while told < most and bytes < BYTES_A_STEP do
  local found = redis.call('ZRANGE', unfinished, 0, 0, 'WITHSCORES')
  if not found[1] then
    break
  end
  local moved, copied = following().advance(found[1], found[2])
  told, bytes = told + moved, bytes + copied + 1 -- so that it ends also where keys have nobody left to tell
end
return { told, redis.call('EXISTS', unfinished) }
