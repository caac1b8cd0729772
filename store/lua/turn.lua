-- turn: the calls of a turn with what is known of each.
-- uses: ledger answer
-- KEYS[1] = root of the namespace
-- ARGV    = turn key
-- RETURNS {per call {call key, answer}}, in no order
-- INVARIANT reads only.
local out = {}
for _, call in ipairs(redis.call('HKEYS', root .. 'turn:' .. ARGV[1])) do
  out[#out + 1] = { call, answer(call) }
end
return out
