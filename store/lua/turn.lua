-- turn: the calls of a turn with what is known of each.
-- uses: ledger record_fields
-- KEYS[1] = root of the namespace
-- ARGV    = turn_key
-- RETURNS {per call {call key, "when its submission came, in microseconds, and its place in that", answer}}, in no order
-- INVARIANT reads only.
local out, turn = {}, redis.call('HGETALL', root .. 'turn:' .. ARGV[1])
for i = 1, #turn, 2 do
  out[#out + 1] = { turn[i], turn[i + 1], answer(turn[i]) }
end
return out
