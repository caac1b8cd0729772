-- Prelude: taking the right to run one call, whose pointer has just been taken from its queue.
-- uses: leaving record_fields
local USUAL_LEASE_MS = 30000 -- the worker's default; any other one is stored

local function hold_back(call, event, reason)
  event.reason = reason
  flow().transition(call, 'queued', 'held', event)
  flow().wait_held(call, event.tool, reason)
  redis.call('PUBLISH', root .. 'wake:' .. (fields(call, 'turn_key')[1] or ''), call) -- a person may have to be asked
  return { 'held', reason }
end

-- What a call that is no longer queued answers to a claim under this token.
local function answer_of(call, got, token)
  if got.state == 'unknown' then
    return { 'unknown' }
  elseif got.state == 'held' then
    return { 'held', got.reason }
  elseif got.state ~= 'running' then
    return { 'settled', got.state }
  elseif got.token ~= token then
    return { 'busy', math.max(0, tonumber(redis.call('ZSCORE', root .. 'leases', call) or now) - now) }
  end
  redis.call('HSET', record_of(call), 'token', token)
  return { 'run', tonumber(got.fence), run_fields(got) }
end

-- As `claim` answers. `mine` is who asks: token (of the delivery), worker, lease, seen (the highest fence before),
-- bars_mutating; and went_back, the flag.
local function take_run(job, mine)
  local call, token, worker = string.sub(job, 1, 32), mine.token, mine.worker
  local got = whole_record(call)
  if not got.state or job_of(call, got.fp) ~= job then
    return { 'gone' }
  elseif got.state ~= 'queued' then
    return answer_of(call, got, token)
  elseif got.waits and string.sub(got.waits, 1, 6) == 'pause ' then
    return { 'parked', got.waits } -- a doubled pointer: the sweep brings the call back in its order
  end

  local event = { op = 'claim', actor = worker, tool = got.tool }
  if (tonumber(got.deadline_at or '') or now + 1) <= now then
    local stopped = flow().meet_deadline(call, event)
    if stopped then
      return stopped
    end
    got.deadline_at = fields(call, 'deadline_at')[1]
  end
  if tonumber(got.not_before or '0') > now and redis.call('ZSCORE', root .. 'delayed', call) then
    return { 'parked', 'later' } -- a doubled pointer: the call itself waits among the delayed
  elseif (got.lanes or got.predecessors) and not flow().is_next(call, got.lanes, got.predecessors) then
    return hold_back(call, event, 'order')
  end

  local fence, is_mutating = redis.call('INCR', root .. 'fence'), got.effect == 'mutating'
  if fence <= mine.seen then
    flow().flag_step_back(mine.seen, fence - 1, 'a process has seen a higher fence')
    redis.call('SET', root .. 'fence', whole(mine.seen))
    fence, mine.went_back = nil, redis.call('HGET', root .. 'flags', 'went_back')
  end
  local went_back = is_mutating and mine.went_back
  if went_back and got.loss_accepted ~= went_back then
    return hold_back(call, event, 'store_went_back')
  elseif is_mutating and mine.bars_mutating then
    flow().park(call, got.queue, 'replicas')
    if got.woken then
      flow().rates().pass_on(got.woken) -- what it was woken for is still free
    end
    return { 'parked', 'replicas' }
  end
  local taken = {}
  if redis.call('EXISTS', root .. 'controls') == 1 then -- else neither people nor the code have said anything
    local stopped
    stopped, taken = flow().park_where_limited(call, got, got.tenant)
    if stopped then
      return stopped
    end
  end

  local attempt = whole((got.attempt or 0) + 1)
  fence = whole(fence or redis.call('INCR', root .. 'fence'))
  event.fence, event.attempt = fence, attempt
  if got.waits or got.woken then
    flow().leave_queue(call, 'running', got)
  else
    leave_line(call, got)
  end
  local more = { 'fence', fence, 'token', token, 'worker', worker, 'claimed_at', now_text, 'attempt', attempt }
  if got.begun == '1' then
    more[#more + 1], more[#more + 2] = 'begun', 0
  end
  if mine.lease ~= tonumber(got.lease or '') and (got.lease or mine.lease ~= USUAL_LEASE_MS) then
    more[#more + 1], more[#more + 2] = 'lease', mine.lease
  end
  if mine.bars_mutating then
    more[#more + 1], more[#more + 2] = 'marks', '{"durable":false}'
  end
  local is_usual = not got.history and (got.reason or '') == ''
  ;(is_usual and move_as_usual or flow().move)(call, 'queued', 'running', event, more)
  for _, limit in ipairs(taken) do
    redis.call('SADD', root .. 'slots:' .. limit, call)
  end
  redis.call('ZADD', root .. 'leases', whole(now + mine.lease), call)
  got.attempt, got.claimed_at = attempt, now_text
  return { 'run', tonumber(fence), run_fields(got) }
end
