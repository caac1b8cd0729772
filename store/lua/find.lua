-- find: which calls start with these digits, for people who type less than a whole key.
-- uses: ledger
-- KEYS[1] = root of the namespace
-- ARGV    = prefix (first digits of a call key), most (calls to look at from each end of each state)
-- RETURNS {call keys, at most ten}
-- INVARIANT reads only; looks at a bounded number of calls, the newest and the oldest of each state.
local prefix, most = ARGV[1], tonumber(ARGV[2])
local found, seen = {}, {}

local function look(calls)
  for _, call in ipairs(calls) do
    if not seen[call] and #found < 10 and string.sub(call, 1, #prefix) == prefix then
      seen[call] = true
      found[#found + 1] = call
    end
  end
end

for _, state in ipairs({ 'held', 'queued', 'running', 'unknown', 'succeeded', 'failed', 'refused', 'cancelled', 'expired' }) do
  local index = root .. (state == 'running' and 'leases' or 'in:' .. state)
  look(redis.call('ZREVRANGE', index, 0, most - 1))
  if redis.call('ZCARD', index) > most then
    look(redis.call('ZRANGE', index, 0, most - 1))
  end
end
return found
