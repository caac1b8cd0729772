-- Prelude: taking the right to run one call, whose pointer has just been taken from its queue.
-- uses: queue record_fields fence

-- As `claim` answers. `mine` is who asks: token (of the delivery), worker, lease, seen (the highest fence before),
-- bars_mutating.
local function take_run(job, mine)
  local call, token, worker, bars_mutating = string.sub(job, 1, 32), mine.token, mine.worker, mine.bars_mutating

  -- The record is read once: first what the worker is told, then what decides here.
  local run = run_fields(call, 'state', 'token', 'fence', 'not_before', 'lanes', 'predecessors', 'queue', 'reason',
    'waits', 'woken')
  local state, held_by, under, not_before, lanes, predecessors, queue, reason, waits, woken =
    unpack(run, RUN_FIELDS + 1)
  local tool, tenant, effect, deadline_at = run[1], run[7], run[11], run[15]
  if not state or job_of(call, run[5]) ~= job then
    return { 'gone' }
  elseif state == 'running' then
    if held_by == token then
      redis.call('HSET', record_of(call), 'token', token)
      return { 'run', tonumber(under), { unpack(run, 1, RUN_FIELDS) } }
    end
    return { 'busy', math.max(0, tonumber(redis.call('ZSCORE', root .. 'leases', call) or now) - now) }
  elseif state == 'unknown' then
    return { 'unknown' }
  elseif state == 'held' then
    return { 'held', reason }
  elseif state ~= 'queued' then
    return { 'settled', state }
  elseif waits and string.sub(waits, 1, 6) == 'pause ' then
    return { 'parked', waits } -- a doubled pointer: the sweep brings the call back in its order
  end

  local event = { op = 'claim', actor = worker, tool = tool }
  if (tonumber(deadline_at or '') or now + 1) <= now then
    local stopped = flow().meet_deadline(call, event)
    if stopped then
      return stopped
    end
    run[15] = fields(call, 'deadline_at')[1]
  end
  if tonumber(not_before or '0') > now and redis.call('ZSCORE', root .. 'delayed', call) then
    return { 'parked', 'later' } -- a doubled pointer: the call itself waits among the delayed
  elseif (lanes or predecessors) and not flow().is_next(call, lanes, predecessors) then
    event.reason = 'order'
    flow().transition(call, 'queued', 'held', event)
    flow().wait_held(call, tool, event.reason)
    return { 'held', 'order' }
  end

  highest_fence(mine.seen)
  local went_back = effect == 'mutating' and redis.call('HGET', root .. 'flags', 'went_back')
  if went_back and fields(call, 'loss_accepted')[1] ~= went_back then
    event.reason = 'store_went_back'
    flow().transition(call, 'queued', 'held', event)
    flow().wait_held(call, tool, event.reason)
    return { 'held', 'store_went_back' }
  end

  if effect == 'mutating' and bars_mutating then
    park(call, queue, REPLICAS)
    if woken then
      rates().pass_on(woken) -- what it was woken for is still free
    end
    return { 'parked', REPLICAS }
  end

  local taken, limits = {}, limits_of(tool, tenant)
  local set, rated = controls_for(limits, queue), 'rate:' .. limits[1]
  if set.pause then
    flow().park_paused(call, queue, set.pause, set.all)
    return { 'parked', set.pause }
  end
  if set.is_new then
    new_limits().count_running()
  end
  if set.rate and not rates().may_start(rated, set.rate, woken) then
    local about = { tool = tool, woken = woken, rate = set.rate }
    return { 'parked', rated, rates().park_for_start(call, queue, rated, about, park) }
  end
  for i = 1, 2 do
    local room = room_under(set[i], limits[i])
    local limit = limits[i]
    if room < 1 then
      park(call, queue, limit)
      if woken and woken ~= limit then
        rates().pass_on(woken) -- what it was woken for is still free: the next in line gets its chance
      end
      return { 'parked', limit }
    elseif room < math.huge then
      taken[#taken + 1] = limit
    end
  end

  if set.rate then
    rates().take_start(rated, set.rate)
  end
  local fence = redis.call('INCR', root .. 'fence')
  local attempt = tonumber(run[13]) + 1
  event.fence, event.attempt = fence, attempt
  leave_queue(call, 'running',
    { queue = queue, tenant = tenant, waits = waits, woken = woken, deadline_at = deadline_at })
  move(call, 'queued', 'running', event, { 'fence', fence, 'token', token, 'worker', worker, 'claimed_at', whole(now),
    'begun', 0, 'attempt', attempt, 'lease', mine.lease })
  if bars_mutating then
    redis.call('HSET', record_of(call), 'marks', '{"durable":false}')
  end
  for _, limit in ipairs(taken) do
    redis.call('SADD', root .. 'slots:' .. limit, call)
  end
  redis.call('ZADD', root .. 'leases', whole(now + mine.lease), call)
  run[13], run[19] = whole(attempt), whole(now)
  return { 'run', fence, { unpack(run, 1, RUN_FIELDS) } }
end
