-- turn: the calls of a turn with what is known of each.
-- uses: ledger record_fields controls (pauses)
-- KEYS[1] = root of the namespace
-- ARGV    = turn_key
-- RETURNS {per call {call key, "when its submission came, in microseconds, and its place in that", answer, 1 where it is
--         queued and paused, parked or not}}, in no order
-- INVARIANT reads only.
local out, turn = {}, redis.call('HGETALL', root .. 'turn:' .. ARGV[1])
local any_paused
local function is_paused(call)
  if any_paused == nil then
    any_paused = redis.call('HGET', root .. 'flags', 'pauses') or false
  end
  if not any_paused then
    return false
  end
  local got = fields(call, 'tool', 'tenant', 'queue')
  local _, pause = pauses().pauses_of(got[1], got[2], got[3])
  return pause
end
for i = 1, #turn, 2 do
  local told = answer(turn[i])
  out[#out + 1] = { turn[i], turn[i + 1], told, told[1] == 'queued' and is_paused(turn[i]) and 1 or 0 }
end
return out
