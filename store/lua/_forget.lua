-- Prelude: taking the body of a settled call. What identifies it stays as a tombstone, so that it never runs again.
-- It says when the call came to rest, when its body went (both in ms) and how many bytes its result had.
-- uses: record_fields
local function forget_body(call, state)
  local index = root .. 'in:' .. state
  local got = fields(call, 'fp', 'queue', 'settled_at', 'changed_at')
  local job = job_of(call, got[1])
  local told = (got[3] or got[4] or '0') .. ' ' .. now_text .. ' ' .. redis.call('HSTRLEN', record_of(call), 'result')
  forget_fields(call) -- also what a call needs in order to run: a forgotten one never runs again
  redis.call('HSET', record_of(call), 'forgotten', told)
  redis.call('DEL', rq .. 'job:' .. job)
  redis.call('ZREM', rq .. 'finished:' .. space .. '.' .. (got[2] or ''), job)
  redis.call('ZREM', rq .. 'failed:' .. space .. '.' .. (got[2] or ''), job)
  redis.call('DEL', root .. 'history:' .. call, root .. 'evidence:' .. call)
  local entered = redis.call('ZSCORE', index, call)
  redis.call('ZREM', index, call)
  redis.call('ZADD', root .. 'tombs:' .. state, entered or now_text, call)
end
