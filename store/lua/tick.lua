#!lua flags=allow-oom
-- tick: the part of recovery that does what time asks for: delayed calls, deadlines, approvals' lifetimes.
-- uses: ledger flow
-- KEYS[1] = root of the namespace
-- ARGV    = most calls of each kind in this step
-- RETURNS {number made available, number expired, number of approvals expired, ms until the next delayed call or -1}
-- INVARIANT only Redis time counts.
local most = tonumber(ARGV[1])
local function due(kind)
  return redis.call('ZRANGEBYSCORE', root .. kind, '-inf', whole(now), 'LIMIT', 0, most)
end

local function expire(call, from, message)
  redis.call('HSET', record_of(call), 'error', cjson.encode({ code = 'expired', message = message }))
  transition(call, from, 'expired', { op = 'expire', actor = 'recovery', tool = fields(call, 'tool')[1] })
end

local expired, approvals, available = 0, 0, 0
for _, call in ipairs(due('deadlines')) do
  if fields(call, 'state')[1] == 'queued' then
    expire(call, 'queued', 'not run: its deadline passed in the queue')
    expired = expired + 1
  end
  redis.call('ZREM', root .. 'deadlines', call)
end
for _, call in ipairs(due('approvals')) do
  if fields(call, 'state')[1] == 'held' then
    expire(call, 'held', 'not run: nobody approved it in time')
    approvals = approvals + 1
  end
  redis.call('ZREM', root .. 'approvals', call)
end
for _, call in ipairs(due('delayed')) do
  redis.call('ZREM', root .. 'delayed', call)
  local got = fields(call, 'state', 'queue', 'ikey')
  if got[1] == 'queued' then
    push(call, got[2], got[3])
    available = available + 1
  end
end
local first = redis.call('ZRANGE', root .. 'delayed', 0, 0, 'WITHSCORES')
return { available, expired, approvals, first[2] and math.max(0, tonumber(first[2]) - now) or -1 }
