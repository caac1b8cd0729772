#!lua flags=allow-oom
-- limit: set or lift caps, most calls at once over all workers; who waits for a slot that now exists goes on.
-- uses: ledger queue
-- KEYS[1] = root of the namespace
-- ARGV    = caps[name (tool:<name> | tenant:<name> | tenant:*: every tenant without a cap of its own), cap ("" for
--           none)]
-- RETURNS number of calls woken
-- INVARIANT a lowered cap stops no running call; it only lets no more in.
local MOST = 1000 -- calls woken in this step; the sweep wakes the rest
local woken = 0
local function let_in(limit)
  woken = woken + wake_into_free_slots(limit, MOST - woken)
end
for i = 1, #ARGV, 2 do
  if ARGV[i + 1] == '' then
    redis.call('HDEL', root .. 'limits', ARGV[i])
  else
    redis.call('HSET', root .. 'limits', ARGV[i], ARGV[i + 1])
  end
  let_in(ARGV[i])
  local others = ARGV[i] == 'tenant:*' and redis.call('SRANDMEMBER', root .. 'saturated_limits', MOST) or {}
  for _, limit in ipairs(others) do
    if string.sub(limit, 1, 7) == 'tenant:' then
      let_in(limit)
    end
  end
end
return woken
