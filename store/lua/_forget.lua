-- Prelude: taking the body of a settled call. What identifies it stays as a tombstone, so that it never runs again.
local function forget_body(call, state)
  local index = root .. 'in:' .. state
  redis.call('HDEL', record_of(call), 'args', 'result', 'marks', 'echo', 'progress', 'progress_message')
  redis.call('HSET', record_of(call), 'forgotten', 1)
  redis.call('DEL', root .. 'history:' .. call, root .. 'evidence:' .. call)
  local entered = redis.call('ZSCORE', index, call)
  redis.call('ZREM', index, call)
  redis.call('ZADD', root .. 'tombs:' .. state, entered or whole(now), call)
end
