-- Prelude: pointers in RQ's queues, the queue deadline, and the slots of limits (tool:<name>, tenant:<name>).
-- Invariant: a queued call is in exactly one place: pushed, delayed, or waiting for a slot or for replicas. A slot that
-- falls free wakes who has waited longest; one who was woken and does not take it passes the wake-up on.
local REPLICAS = 'replicas' -- what mutating calls wait for, like a limit, while too few replicas answer
local wake

local function each(lines, visit)
  for name in string.gmatch(lines or '', '[^\n]+') do
    visit(name)
  end
end

local function queue_key(queue)
  return 'rq:queue:' .. space .. '.' .. queue
end

-- Put a pointer into the RQ queue. `seq` given: the call has waited already and goes to the front.
local function line_up(call, queue, job, seq)
  local list = queue_key(queue)
  local place = seq or redis.call('INCR', root .. 'pushes')
  redis.call('ZADD', root .. 'pushed:' .. queue, whole(tonumber(place)), call)
  redis.call('SADD', 'rq:queues', list)
  redis.call(seq and 'LPUSH' or 'RPUSH', list, job)
end

-- The same for a call whose job may say something else, or may be about to expire.
local function push(call, queue, job, seq)
  redis.call('HSET', 'rq:job:' .. job, 'status', 'queued')
  redis.call('PERSIST', 'rq:job:' .. job)
  line_up(call, queue, job, seq)
end

-- The queue deadline starts when the call first waits for a worker, once; where it was paused, with what was left.
local function start_deadline(call)
  local got = fields(call, 'deadline_at', 'deadline_left', 'deadline_ms')
  local deadline = tonumber(got[1] or '')
  local span = tonumber(got[2] or got[3] or '')
  if not deadline and span then
    deadline = now + span
    redis.call('HSET', record_of(call), 'deadline_at', whole(deadline))
    redis.call('HDEL', record_of(call), 'deadline_left')
  end
  if deadline then
    redis.call('ZADD', root .. 'deadlines', whole(deadline), call)
  end
end

-- A call that waits for another one or for a person, and not for a worker, has no deadline meanwhile.
local function pause_deadline(call)
  local deadline = tonumber(fields(call, 'deadline_at')[1] or '')
  if deadline then
    redis.call('HSET', record_of(call), 'deadline_left', whole(math.max(1, deadline - now)))
    redis.call('HDEL', record_of(call), 'deadline_at')
    redis.call('ZREM', root .. 'deadlines', call)
  end
end

-- Let a queued call wait without a pointer, at its old place, at `place`, or last. Where a pointer comes twice, it may
-- wait already: for something else, or until a moment that has passed.
local function park(call, queue, limit, place)
  local before = root .. 'waiting:' .. (fields(call, 'waits')[1] or '')
  place = place or redis.call('ZSCORE', root .. 'pushed:' .. queue, call) or redis.call('ZSCORE', before, call)
    or redis.call('INCR', root .. 'pushes')
  redis.call('ZREM', root .. 'pushed:' .. queue, call)
  redis.call('ZREM', root .. 'delayed', call)
  redis.call('ZREM', before, call)
  redis.call('ZADD', root .. 'waiting:' .. limit, whole(tonumber(place)), call)
  redis.call('SADD', root .. 'crowded', limit)
  redis.call('HSET', record_of(call), 'waits', limit)
  redis.call('HDEL', record_of(call), 'woken')
end

-- Make a queued call available: at once, or from not_before on. Where too few replicas have its claim, it waits for them,
-- before all others.
local function enqueue(call, delay, waits_for_replicas)
  start_deadline(call)
  redis.call('HSET', record_of(call), 'not_before', whole(now + delay), 'queued_at', whole(now))
  if delay > 0 then
    redis.call('ZADD', root .. 'delayed', whole(now + delay), call)
  elseif waits_for_replicas then
    park(call, fields(call, 'queue')[1], REPLICAS, 0)
  else
    local got = fields(call, 'queue', 'ikey')
    push(call, got[1], got[2])
  end
end

-- The limits that count for a call. What has no cap costs nothing but the look.
local function limits_of(tool, tenant)
  return { 'tool:' .. tool, 'tenant:' .. (tenant or '') }
end

local function room_under(cap, limit)
  return cap and tonumber(cap) - redis.call('SCARD', root .. 'slots:' .. limit) or math.huge
end

-- How many more calls the two limits of a call let run; math.huge where there is no cap.
local function room_for(limits)
  local caps = redis.call('HMGET', root .. 'limits', limits[1], limits[2], 'tenant:*')
  return { room_under(caps[1], limits[1]), room_under(caps[2] or caps[3], limits[2]) }
end

local function room_in(limit)
  local caps = redis.call('HMGET', root .. 'limits', limit, 'tenant:*')
  return room_under(caps[1] or (string.sub(limit, 1, 7) == 'tenant:' and caps[2]), limit)
end

-- Wake the calls that have waited longest for a slot of this limit; returns how many there were.
function wake(limit, most)
  local first = redis.call('ZPOPMIN', root .. 'waiting:' .. limit, most)
  for i = #first - 1, 1, -2 do -- the last one first: each goes to the front of its queue
    local call = first[i]
    local got = fields(call, 'queue', 'ikey')
    if got[1] and got[2] then -- else its record is gone
      redis.call('HDEL', record_of(call), 'waits')
      redis.call('HSET', record_of(call), 'woken', limit, 'woken_at', whole(now))
      push(call, got[1], got[2], first[i + 1])
    end
  end
  if redis.call('EXISTS', root .. 'waiting:' .. limit) == 0 then
    redis.call('SREM', root .. 'crowded', limit)
  end
  return #first / 2
end

-- Wake as many as there is room for; for what no single slot tells of: a cap that was raised, a woken call that
-- nobody comes to claim.
local function rouse(limit, most)
  return wake(limit, math.max(0, math.min(room_in(limit), most)))
end

-- Set those going that wait for replicas, in their order, behind the calls that are in line.
local function resume(most)
  local waiting = root .. 'waiting:' .. REPLICAS
  local first = redis.call('ZPOPMIN', waiting, most)
  for i = 1, #first - 1, 2 do
    local got = fields(first[i], 'queue', 'ikey')
    redis.call('HDEL', record_of(first[i]), 'waits')
    push(first[i], got[1], got[2])
  end
  if redis.call('EXISTS', waiting) == 0 then
    redis.call('SREM', root .. 'crowded', REPLICAS)
  end
  return #first / 2
end

local function leave_limits(call, tool, tenant)
  local limits = limits_of(tool, tenant)
  if redis.call('EXISTS', root .. 'slots:' .. limits[1], root .. 'slots:' .. limits[2]) == 0 then
    return
  end
  for _, limit in ipairs(limits) do
    if redis.call('SREM', root .. 'slots:' .. limit, call) == 1 then
      wake(limit, 1)
    end
  end
end

-- A tenant's queued calls, wherever they wait; counted as they enter and leave the state, for the limit of its share.
local function count_queued(tenant, by)
  local counts = root .. 'queued_by_tenant'
  if redis.call('HINCRBY', counts, tenant or '', by) <= 0 then
    redis.call('HDEL', counts, tenant or '')
  end
end

-- `about` is what the record says: queue, tenant, waits, woken, deadline_at.
local function leave_queue(call, to, about)
  count_queued(about.tenant, -1)
  if redis.call('ZREM', root .. 'pushed:' .. about.queue, call) == 0 then
    redis.call('ZREM', root .. 'delayed', call)
  end
  if about.deadline_at then
    redis.call('ZREM', root .. 'deadlines', call)
  end
  if about.waits then
    redis.call('ZREM', root .. 'waiting:' .. about.waits, call)
  end
  if about.waits or about.woken then
    redis.call('HDEL', record_of(call), 'waits', 'woken')
  end
  if about.woken and to ~= 'running' then
    wake(about.woken, 1) -- the slot it was woken for is still free
  end
end
