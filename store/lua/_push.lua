-- Prelude: pointers in RQ's queues.

local function each(lines, visit)
  for name in string.gmatch(lines or '', '[^\n]+') do
    visit(name)
  end
end

-- Put a pointer into the RQ queue. `seq` given: the call has waited already and goes to the front.
local function line_up(call, queue, job, seq)
  local list = queue_key(queue)
  local place = seq or redis.call('INCR', root .. 'pushes')
  redis.call('ZADD', root .. 'pushed:' .. queue, whole(tonumber(place)), call)
  redis.call('SADD', rq .. 'queues', list)
  redis.call(seq and 'LPUSH' or 'RPUSH', list, job)
end

-- The same for a call whose job may say something else, or may be about to expire.
local function push(call, queue, job, seq)
  redis.call('HSET', rq .. 'job:' .. job, 'status', 'queued')
  redis.call('PERSIST', rq .. 'job:' .. job)
  line_up(call, queue, job, seq)
end
