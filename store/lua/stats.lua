-- stats: counters, ages and queue lengths, at a cost that grows with the slots of all workers alone.
-- uses: ledger queue running
-- KEYS[1] = root of the namespace
-- ARGV    = queues[] (to measure)
-- RETURNS {now, counters as name, value, ..., {state, stored, oldest ms or 0, ...}, {queue, length, in flight, ...},
--          flags as name, value, ..., fence, delayed}
-- INVARIANT reads only; the ledger's sum `admitted = settled + open` can be checked from one answer.
local states, queues = {}, {}
for _, state in ipairs({ 'held', 'queued', 'running', 'unknown', 'succeeded', 'failed', 'refused', 'cancelled', 'expired' }) do
  local is_running, index = state == 'running', root .. 'in:' .. state
  local oldest = is_running and running_calls(0, math.huge) or redis.call('ZRANGE', index, 0, 0, 'WITHSCORES')
  states[#states + 1] = state
  states[#states + 1] = is_running and #oldest / 2 or redis.call('ZCARD', index)
  states[#states + 1] = math.floor(tonumber(oldest[2] or '0'))
end
for _, queue in ipairs(ARGV) do
  queues[#queues + 1] = queue
  queues[#queues + 1] = redis.call('LLEN', queue_key(queue))
  queues[#queues + 1] = redis.call('LLEN', queue_key(queue) .. ':intermediate')
end
return { now, redis.call('HGETALL', root .. 'counts'), states, queues, redis.call('HGETALL', root .. 'flags'),
  tonumber(redis.call('GET', root .. 'fence') or '0'), redis.call('ZCARD', root .. 'delayed') }
