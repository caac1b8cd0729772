-- Prelude: where a queued call waits, and its queue deadline.
-- uses: leaving slots (rates)
-- Invariant: a queued call is in exactly one place: pushed, delayed, or waiting for a slot, for replicas or for the end
-- of a pause.

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

-- A call that waits for another one or for a person, and not for a worker, has no deadline meanwhile. `given`: ms that
-- count as not used up.
local function pause_deadline(call, given)
  local deadline = tonumber(fields(call, 'deadline_at')[1] or '')
  if deadline then
    redis.call('HSET', record_of(call), 'deadline_left', whole(math.max(1, deadline - now + (given or 0))))
    redis.call('HDEL', record_of(call), 'deadline_at')
    redis.call('ZREM', root .. 'deadlines', call)
  end
end

-- Let a queued call wait without a pointer, at its old place, at `place`, or last. Where a pointer comes twice, it may
-- wait already: for something else, or until a moment that has passed.
local function park(call, queue, limit, place)
  local got = fields(call, 'waits', 'woken')
  local before = root .. 'waiting:' .. (got[1] or '')
  place = place or redis.call('ZSCORE', root .. 'pushed:' .. queue, call) or redis.call('ZSCORE', before, call)
    or redis.call('INCR', root .. 'pushes')
  redis.call('ZREM', root .. 'pushed:' .. queue, call)
  redis.call('ZREM', root .. 'delayed', call)
  redis.call('ZREM', before, call)
  redis.call('ZADD', root .. 'waiting:' .. limit, whole(tonumber(place)), call)
  redis.call('SADD', root .. (string.sub(limit, 1, 5) == 'rate:' and 'saturated_rates' or 'saturated_limits'), limit)
  redis.call('HSET', record_of(call), 'waits', limit)
  if got[2] then
    redis.call('HDEL', record_of(call), 'woken')
    rates().forget_woken(call, got[2])
  end
end

-- Make a queued call available: at once, or from not_before on. Where too few replicas have its claim, it waits for them,
-- before all others.
local function enqueue(call, delay, waits_for_replicas)
  start_deadline(call)
  redis.call('HSET', record_of(call), 'not_before', whole(now + delay), 'queued_at', now_text)
  if delay > 0 then
    redis.call('ZADD', root .. 'delayed', whole(now + delay), call)
  elseif waits_for_replicas then
    park(call, fields(call, 'queue')[1], REPLICAS, 0)
  else
    local got = fields(call, 'queue', 'fp')
    push(call, got[1], job_of(call, got[2]))
  end
end

-- A call leaves the queue, wherever it waits there. `about` is what the record says: queue, tenant, waits, woken,
-- deadline_at.
local function leave_queue(call, to, about)
  leave_line(call, about)
  if about.waits then
    redis.call('ZREM', root .. 'waiting:' .. about.waits, call)
  end
  if about.waits or about.woken then
    redis.call('HDEL', record_of(call), 'waits', 'woken')
  end
  if about.woken then
    rates().forget_woken(call, about.woken)
    if to ~= 'running' then
      rates().pass_on(about.woken) -- what it was woken for is still free
    end
  end
end

local function leave_limits(call, tool, tenant)
  local limits = limits_of(tool, tenant)
  if redis.call('EXISTS', root .. 'slots:' .. limits[1], root .. 'slots:' .. limits[2]) == 0 then
    return
  end
  for _, limit in ipairs(limits) do
    local has_left = redis.call('SREM', root .. 'slots:' .. limit, call) == 1
    if has_left and wake_waiting(limit, 1) == 0 and redis.call('EXISTS', root .. 'waiting:rate:' .. limit) == 1 then
      rates().wake_for_starts('rate:' .. limit, 1)
    end
  end
end
