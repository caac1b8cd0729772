-- Prelude: where a new call of this submission goes: queued, held or refused, and what its record says of that.
-- uses: flow new_record predecessors answering
local ARGUMENT_ERRORS_TTL = 86400

-- Arguments that were of no use: the how many-eth turn in a row with such a call of this tool in this scope. The
-- model may correct once; several such calls in one turn count once, since it could not correct in between.
local function count_argument_error(asked)
  local errors = root .. 'argument_errors:' .. asked.scope
  local number, turn = string.match(redis.call('HGET', errors, asked.tool) or '', '^(%d+) (.*)$')
  number = tonumber(number or '0') + (turn == turn_key and 0 or 1)
  redis.call('HSET', errors, asked.tool, number .. ' ' .. turn_key)
  redis.call('EXPIRE', errors, ARGUMENT_ERRORS_TTL)
  return number
end

-- State and reason of a call that is not refused as it came. `more` is what else is written to its record.
local function place(spec, more)
  local call, asked, state, reason = spec.call, spec.asked, spec.state, spec.reason
  if asked.lanes then
    local seq = redis.call('INCR', root .. 'admissions')
    each(asked.lanes, function(lane)
      redis.call('ZADD', root .. 'lane:' .. lane, seq, call)
    end)
  end
  local open, why = follow(spec)
  if not open then
    local how = more.may_have_run and 'not run since the store has lost writes' or 'not run'
    more.error = cjson.encode({ code = 'predecessor', message = how .. ': the call it had to follow is ' .. why,
      details = { predecessor_state = why } })
    return 'refused', 'predecessor ' .. why
  end
  more.predecessors = open > 0 and open or nil
  if spec.unique_to >= spec.unique_from then
    local met, because = unique()[asked.unique_by and 'join' or 'join_equal'](spec, more)
    if met then
      return met, because
    end
  end
  if state ~= 'queued' then
    return state, reason
  elseif more.duplicate_of then
    return 'held', 'duplicate'
  elseif open > 0 or (asked.lanes and not is_next(call, asked.lanes)) then
    return 'held', 'order'
  end
  return state, reason
end

-- The queue deadline starts with the first wait for a worker: what `enqueue` does, for a call that has no record yet.
local function await_worker(call, asked, more, rates_wait)
  if asked.deadline_ms then
    more.deadline_at = whole(now + tonumber(asked.deadline_ms))
    redis.call('ZADD', root .. 'deadlines', more.deadline_at, call)
  end
  local rated = rates_wait and 'rate:tool:' .. asked.tool
  if rated and redis.call('EXISTS', root .. 'waiting:' .. rated) == 1 then
    redis.call('ZADD', root .. 'waiting:' .. rated, redis.call('INCR', root .. 'pushes'), call)
    more.waits = rated -- those before it wait, so it would be claimed only to wait as well
  else
    line_up(call, asked.queue, job_of(call, asked.fp))
  end
end

-- A call refused from the start never has a pointer; the others have one from now on, waiting or in the queue.
local function settle_in(call, state, reason, spec)
  if spec.follows then
    following().settle_follower(call, spec.follows)
  elseif state == 'held' then
    wait_held(call, spec.asked.tool, reason, spec.approval)
  elseif state == 'refused' and spec.state ~= 'refused' then
    on_rest(call, state, spec.asked.tool, load_context(call))
  elseif state == 'refused' then
    redis.call('PUBLISH', root .. 'wake:' .. turn_key, call)
  end
end

-- Store a new call, whatever becomes of it; returns its state. `about` says has_lost_writes and rates_wait.
local function admit(spec, about)
  local call, asked, state, reason, more = spec.call, spec.asked, spec.state, spec.reason, {}
  more.reply_id = spec.reply_id
  redis.call('HSET', root .. 'turn:' .. turn_key, call, came_at .. ' ' .. asked.position)
  if state ~= 'refused' then
    more.may_have_run = about.has_lost_writes and asked.effect ~= 'read' and 1 or nil
    state, reason = place(spec, more)
    store_pointer(call, asked, state == 'held' and 'deferred' or 'queued')
  end
  if reason == 'invalid_arguments' or reason == 'too_costly' then
    more.argument_errors = count_argument_error(asked)
  end
  if state == 'queued' then
    await_worker(call, asked, more, about.rates_wait)
  end
  move(call, false, state, { op = 'admit', actor = 'submit', tool = asked.tool, reason = reason }, record(spec, more))
  settle_in(call, state, reason, spec)
  if stored_by_tool then
    remember(call, asked.tool)
  end
  return state
end
