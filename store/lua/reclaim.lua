#!lua flags=allow-oom
-- reclaim: the part of recovery that ends leases which have run out.
-- uses: ledger clock queue flow
-- KEYS[1] = root of the namespace
-- ARGV    = most (calls to end in this step), worker (that sweeps)
-- RETURNS {number became queued, failed, unknown, cancelled, number of expired leases still left,
--          number of leases granted again since the clock went back or another server took over}
-- INVARIANT a lease that is alive by Redis time, of one server whose clock goes on, is never touched.
local became = { queued = 0, failed = 0, unknown = 0, cancelled = 0 }
local leases = root .. 'leases'
local given = look_at_clock()
repair_each(leases, redis.call('ZRANGEBYSCORE', leases, '-inf', now_text, 'LIMIT', 0, tonumber(ARGV[1])), function(call)
  local got = fields(call, 'state', 'worker')
  if got[1] == 'running' then
    local to = lose(call, 'the worker ' .. (got[2] or '?') .. ' was lost: its lease ran out', 'recovery/' .. ARGV[2])
    became[to] = became[to] + 1
  else
    redis.call('ZREM', leases, call)
  end
end)
local left = redis.call('ZCOUNT', leases, '-inf', now_text)
return { became.queued, became.failed, became.unknown, became.cancelled, left, given }
