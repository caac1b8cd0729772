#!lua flags=allow-oom
-- tick: the part of recovery that applies times that are due: delayed calls, deadlines, approvals' lifetimes. It also
-- wakes calls of limits that have a free slot, and brings parked calls back after a pause.
-- uses: ledger clock queue flow
-- KEYS[1] = root of the namespace
-- ARGV    = most (calls of each kind in this step), enough_replicas (1 where enough answer for mutating calls to be
--           run)
-- RETURNS {number made available, number expired, number of approvals expired, number woken or brought back, number
--          parked instead of expired, ms until the next delayed call, or the next start of a call that waits for its
--          tool's rate, or -1}
-- INVARIANT no call whose tool, tenant or queue is paused expires while it waits to run. Only Redis time counts. Where it
--           went back, nothing waits longer from then on than it was given.
local most = tonumber(ARGV[1])
look_at_clock()
cut_overlong(most)
local function apply_due(kind, repair)
  repair_each(root .. kind, redis.call('ZRANGEBYSCORE', root .. kind, '-inf', now_text, 'LIMIT', 0, most), repair)
end

local expired, approvals, available, woken, parked = 0, 0, 0, 0, 0
apply_due('deadlines', function(call)
  local became = meet_deadline(call, { actor = 'recovery', tool = fields(call, 'tool')[1] })
  expired = expired + (became and became[1] == 'settled' and 1 or 0)
  parked = parked + (became and became[1] == 'parked' and 1 or 0)
end)
apply_due('approvals', function(call)
  end_waiting(call, 'held', 'expired', { op = 'expire', actor = 'recovery', tool = fields(call, 'tool')[1] },
    'nobody approved it in time')
  approvals = approvals + 1
end)
apply_due('delayed', function(call)
  local got = fields(call, 'queue', 'fp')
  redis.call('ZREM', root .. 'delayed', call)
  push(call, got[1], job_of(call, got[2]))
  available = available + 1
end)
for _, limit in ipairs(redis.call('SRANDMEMBER', root .. 'saturated_limits', most)) do
  if string.sub(limit, 1, 6) == 'pause ' then
    woken = woken + bring_back(limit, most)
  elseif limit ~= REPLICAS then
    woken = woken + wake_into_free_slots(limit, most)
  elseif ARGV[2] == '1' then
    woken = woken + resume(most)
  end
end
local next_start, rated = math.huge, redis.call('SMEMBERS', root .. 'saturated_rates')
for _, limit in ipairs(rated) do
  local more, in_us = rates().wake_for_starts(limit, most)
  woken, next_start = woken + more, math.min(next_start, in_us or next_start)
end
if not rated[1] then
  redis.call('HDEL', root .. 'flags', 'rates_wait')
end
local first = redis.call('ZRANGE', root .. 'delayed', 0, 0, 'WITHSCORES')
local due = math.min(math.ceil(next_start / 1000), first[2] and math.max(0, tonumber(first[2]) - now) or math.huge)
return { available, expired, approvals, woken, parked, due < math.huge and due or -1 }
