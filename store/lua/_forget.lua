-- Prelude: taking the body of a settled call. What identifies it stays as a tombstone, so that it never runs again.
-- It says when the call came to rest, when its body went (both in ms) and how many bytes its result had.
-- uses: record_fields
local function forget_body(call, state)
  local index = root .. 'in:' .. state
  local job = fields(call, 'ikey', 'queue', 'settled_at', 'changed_at')
  local told = (job[3] or job[4] or '0') .. ' ' .. whole(now) .. ' ' .. redis.call('HSTRLEN', record_of(call), 'result')
  forget_fields(call) -- also what a call needs in order to run: a forgotten one never runs again
  redis.call('HSET', record_of(call), 'forgotten', told)
  redis.call('DEL', rq .. 'job:' .. (job[1] or ''))
  redis.call('ZREM', rq .. 'finished:' .. space .. '.' .. (job[2] or ''), job[1] or '')
  redis.call('ZREM', rq .. 'failed:' .. space .. '.' .. (job[2] or ''), job[1] or '')
  redis.call('DEL', root .. 'history:' .. call, root .. 'evidence:' .. call)
  local entered = redis.call('ZSCORE', index, call)
  redis.call('ZREM', index, call)
  redis.call('ZADD', root .. 'tombs:' .. state, entered or whole(now), call)
end
