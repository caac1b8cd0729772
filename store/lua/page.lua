-- page: one page of the calls in a state, newest or oldest first; never a scan of the store.
-- uses: ledger record_fields ahead
-- KEYS[1] = root of the namespace
-- ARGV    = state, order ("new" | "old" first), after (entered the state then or later: ms with decimals, or "-inf"),
--           before (the same, or "+inf"), offset, most
-- RETURNS {now, total in the range, then per call {call key, entered in microseconds, fields by record.PAGE_FIELDS,
--          key and state of the call that a held one waits for}}
-- INVARIANT reads only; looks at no more calls than asked for.
local index = root .. 'in:' .. ARGV[1]
local range
if ARGV[2] == 'old' then
  range = redis.call('ZRANGEBYSCORE', index, ARGV[3], ARGV[4], 'WITHSCORES', 'LIMIT', ARGV[5], ARGV[6])
else
  range = redis.call('ZREVRANGEBYSCORE', index, ARGV[4], ARGV[3], 'WITHSCORES', 'LIMIT', ARGV[5], ARGV[6])
end
local out = { now, redis.call('ZCOUNT', index, ARGV[3], ARGV[4]) }
for i = 1, #range, 2 do
  local entered = math.floor(tonumber(range[i + 1]) * 1000 + 0.5)
  local got = page_fields(range[i])
  local ahead, ahead_state = false, false
  if ARGV[1] == 'held' then
    local about = fields(range[i], 'lanes', 'duplicate_of', 'follows')
    ahead, ahead_state = ahead_of(range[i], about[1], about[2], about[3])
  end
  out[#out + 1] = { range[i], entered, got, ahead, ahead_state }
end
return out
