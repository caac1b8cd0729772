-- aborted: note turns that gave no calls and were billed all the same; read the newest.
-- uses: ledger
-- KEYS[1] = root of the namespace
-- ARGV    = note (JSON with an id of its own; "" to note nothing), most (notes to return)
-- RETURNS per note, newest first: note, when it was made in ms with decimals
-- INVARIANT a note that comes twice is kept once; the newest 10,000 are kept.
local MOST = 10000
local notes = root .. 'aborted'
if ARGV[1] ~= '' and redis.call('ZADD', notes, 'NX', moment(), ARGV[1]) == 1 and redis.call('ZCARD', notes) > MOST then
  redis.call('ZPOPMIN', notes)
end
local most = tonumber(ARGV[2])
return most > 0 and redis.call('ZREVRANGE', notes, 0, most - 1, 'WITHSCORES') or {}
