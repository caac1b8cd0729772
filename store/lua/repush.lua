#!lua flags=allow-oom
-- repush: the part of recovery that finds queued calls whose pointer was lost between the queue and a claim.
-- uses: ledger flow
-- KEYS[1] = root of the namespace
-- ARGV    = queue, grace in ms, most calls to look at in this step
-- RETURNS {number suspected, number pushed again}
-- INVARIANT the queue is first in, first out: whoever was pushed before its head, and is still queued, has been
--           popped. Two looks, a grace apart, tell a lost pointer from one in flight. A doubled pointer is harmless.
local queue, grace, most = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local list, pushed, suspects = queue_key(queue), root .. 'pushed:' .. queue, root .. 'suspects'
local head = redis.call('LINDEX', list, 0)
local border = '+inf'
if head then
  local seq = redis.call('ZSCORE', pushed, string.sub(head, 1, 32))
  border = seq and '(' .. whole(tonumber(seq)) or '-inf' -- a stale pointer at the head: look again when it is gone
end
local suspected, again = 0, 0
for _, call in ipairs(redis.call('ZRANGEBYSCORE', pushed, '-inf', border, 'LIMIT', 0, most)) do
  local since = tonumber(redis.call('ZSCORE', suspects, call) or '')
  if not since then
    redis.call('ZADD', suspects, whole(now), call)
    suspected = suspected + 1
  elseif now - since >= grace then
    local got = fields(call, 'ikey', 'tool', 'state')
    redis.call('ZREM', suspects, call)
    redis.call('ZREM', pushed, call)
    if got[3] == 'queued' then
      redis.call('LREM', list .. ':intermediate', 0, got[1])
      push(call, queue, got[1])
      note(call, { op = 'repush', actor = 'recovery', tool = got[2], reason = 'its pointer was lost' })
      again = again + 1
    end
  end
end
return { suspected, again }
