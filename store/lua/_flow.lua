-- Prelude: what follows from a change of state. Pointers, deadlines, slots of limits, lanes of order, followers.
-- Invariant: whoever leaves running passes its slots on, and whoever comes to rest passes its turn on, in the
-- same script; nothing has to be noticed later for others to go on.
local RQ_RESULT_TTL = 500
local ANSWERS_TTL = 86400
local transition

local function each(lines, visit)
  for name in string.gmatch(lines or '', '[^\n]+') do
    visit(name)
  end
end

local function queue_key(queue)
  return 'rq:queue:' .. space .. '.' .. queue
end

-- Put the pointer into the RQ queue. `seq` given: the call has waited already and goes to the front.
local function push(call, queue, job, seq)
  local list = queue_key(queue)
  local place = seq or redis.call('INCR', root .. 'pushes')
  redis.call('ZADD', root .. 'pushed:' .. queue, whole(tonumber(place)), call)
  redis.call('SADD', 'rq:queues', list)
  redis.call('HSET', 'rq:job:' .. job, 'status', 'queued')
  redis.call('PERSIST', 'rq:job:' .. job)
  redis.call(seq and 'LPUSH' or 'RPUSH', list, job)
end

-- Make a queued call available: at once, or from not_before on. The queue deadline starts here, once.
local function enqueue(call, delay)
  local got = fields(call, 'queue', 'ikey', 'deadline_at', 'deadline_ms')
  local deadline = tonumber(got[3] or '')
  if not deadline and tonumber(got[4] or '') then
    deadline = now + tonumber(got[4])
    redis.call('HSET', record_of(call), 'deadline_at', whole(deadline))
  end
  if deadline then
    redis.call('ZADD', root .. 'deadlines', whole(deadline), call)
  end
  redis.call('HSET', record_of(call), 'not_before', whole(now + delay), 'queued_at', whole(now))
  if delay > 0 then
    redis.call('ZADD', root .. 'delayed', whole(now + delay), call)
  else
    push(call, got[1], got[2])
  end
end

-- Wake the call that has waited longest for a slot of this limit.
local function wake(limit)
  local waiting = root .. 'waiting:' .. limit
  local first = redis.call('ZRANGE', waiting, 0, 0, 'WITHSCORES')
  if first[1] then
    redis.call('ZREM', waiting, first[1])
    redis.call('HDEL', record_of(first[1]), 'waits')
    local got = fields(first[1], 'queue', 'ikey')
    push(first[1], got[1], got[2], first[2])
  end
end

local function leave_running(call)
  local got = fields(call, 'slots', 'queue', 'ikey', 'token')
  redis.call('ZREM', root .. 'leases', call)
  redis.call('ZREM', 'rq:wip:' .. space .. '.' .. got[2], got[3] .. ':' .. got[4])
  each(got[1], function(limit)
    redis.call('SREM', root .. 'slots:' .. limit, call)
    wake(limit)
  end)
  redis.call('HDEL', record_of(call), 'slots')
end

local function leave_queue(call)
  local got = fields(call, 'queue', 'waits')
  redis.call('ZREM', root .. 'pushed:' .. got[1], call)
  redis.call('ZREM', root .. 'suspects', call)
  redis.call('ZREM', root .. 'delayed', call)
  redis.call('ZREM', root .. 'deadlines', call)
  if got[2] then
    redis.call('ZREM', root .. 'waiting:' .. got[2], call)
    redis.call('HDEL', record_of(call), 'waits')
  end
end

-- Is the call first in each of its lanes, with no predecessor still to succeed?
local function is_next(call, lanes, predecessors)
  local free = (tonumber(predecessors or '') or 0) == 0
  each(lanes, function(lane)
    local first = redis.call('ZRANGE', root .. 'lane:' .. lane, 0, 0)[1]
    free = free and (first == nil or first == call)
  end)
  return free
end

local function free_if_next(call)
  local got = fields(call, 'state', 'reason', 'lanes', 'predecessors', 'tool')
  if got[1] == 'held' and got[2] == 'order' and is_next(call, got[3], got[4]) then
    transition(call, 'held', 'queued', { op = 'free', actor = 'order', tool = got[5] })
    enqueue(call, 0)
  end
end

local function tell_follower(follower, settled_as)
  local got = fields(follower, 'state', 'reason', 'tool')
  if settled_as == 'succeeded' then
    redis.call('HINCRBY', record_of(follower), 'predecessors', -1)
    free_if_next(follower)
  elseif got[1] == 'held' then
    redis.call('HSET', record_of(follower), 'error', cjson.encode({
      code = 'predecessor', message = 'not run: the call it had to follow ended as ' .. settled_as,
      details = { predecessor_state = settled_as } }))
    transition(follower, 'held', 'refused',
      { op = 'free', actor = 'order', tool = got[3], reason = 'predecessor ' .. settled_as })
  end
end

-- Write what became of the call to the answer streams that inbox entries asked for; they live for a day.
local function tell_harness(call, streams)
  each(streams, function(stream)
    local got = fields(call, 'position', 'call_id', 'tool', 'state', 'result', 'error', 'marks')
    redis.call('XADD', stream, '*', 'call', call, 'position', got[1], 'id', got[2] or '', 'name', got[3],
      'state', got[4], 'result', got[5] or '', 'error', got[6] or '', 'marks', got[7] or '')
    redis.call('EXPIRE', stream, ANSWERS_TTL)
  end)
end

-- The call has come to rest: its job, its lanes, its followers, those who wait for its turn.
local function arrive(call, to)
  local got = fields(call, 'lanes', 'turn_key', 'ikey', 'queue', 'answers')
  local job = 'rq:job:' .. got[3]
  local registry = (to == 'failed' or to == 'unknown') and 'rq:failed:' or 'rq:finished:'
  redis.call('ZADD', registry .. space .. '.' .. got[4], math.floor(now / 1000) + RQ_RESULT_TTL, got[3])
  redis.call('HSET', job, 'status', registry == 'rq:failed:' and 'failed' or 'finished')
  redis.call('EXPIRE', job, RQ_RESULT_TTL)
  if to ~= 'unknown' then
    each(got[1], function(lane)
      redis.call('ZREM', root .. 'lane:' .. lane, call)
      local first = redis.call('ZRANGE', root .. 'lane:' .. lane, 0, 0)[1]
      if first then
        free_if_next(first)
      end
    end)
  end
  local followers = redis.call('SMEMBERS', root .. 'followers:' .. call)
  redis.call('DEL', root .. 'followers:' .. call)
  for _, follower in ipairs(followers) do
    tell_follower(follower, to)
  end
  tell_harness(call, got[5])
  redis.call('PUBLISH', root .. 'wake:' .. got[2], call)
end

local function leave_rest(call, tool)
  local got = fields(call, 'ikey', 'queue')
  redis.call('ZREM', 'rq:failed:' .. space .. '.' .. got[2], got[1])
  redis.call('ZREM', root .. 'readback:' .. tool, call)
end

function transition(call, from, to, event)
  if from == 'running' then
    leave_running(call)
  elseif from == 'queued' then
    leave_queue(call)
  elseif from == 'held' then
    redis.call('ZREM', root .. 'approvals', call)
    redis.call('SREM', root .. 'without:' .. event.tool, call)
  elseif from then
    leave_rest(call, event.tool)
  end
  if to == 'held' then
    redis.call('HSET', 'rq:job:' .. fields(call, 'ikey')[1], 'status', 'deferred')
  end
  move(call, from, to, event)
  if to == 'unknown' then
    redis.call('ZADD', root .. 'readback:' .. event.tool, whole(now), call)
  end
  if to == 'unknown' or not OPEN[to] then
    arrive(call, to)
  end
end

-- Nobody runs this attempt any more. What follows is decided by the tool's effect, never by a timer.
local function lose(call, why, actor)
  local got = fields(call, 'effect', 'attempt', 'attempt_limit', 'deadline_at', 'begins', 'begun', 'tool', 'fence')
  local event = { op = 'lose', actor = actor, tool = got[7], fence = got[8], attempt = got[2], reason = why }
  local untouched = got[5] == '1' and got[6] ~= '1'
  local error = { code = 'interrupted', message = why, details = { attempt = tonumber(got[2]) } }
  if got[1] == 'mutating' and not untouched then
    error.code = 'outcome_unknown'
    redis.call('HSET', record_of(call), 'error', cjson.encode(error))
    transition(call, 'running', 'unknown', event)
    return 'unknown'
  end
  local late = tonumber(got[4] or '') and tonumber(got[4]) <= now
  if late or tonumber(got[2]) >= tonumber(got[3]) then
    error.code = late and 'deadline_exceeded' or 'attempts_exhausted'
    error.message = why .. (late and '; its deadline has passed' or '; no attempts are left')
    redis.call('HSET', record_of(call), 'error', cjson.encode(error), 'settled_by', actor)
    transition(call, 'running', 'failed', event)
    return 'failed'
  end
  transition(call, 'running', 'queued', event)
  enqueue(call, 0)
  return 'queued'
end
