-- Prelude: what follows from a change of state. Order, followers, RQ's view, those who wait, attempts that are lost.
-- Invariant: whoever leaves running passes its slots on, and whoever comes to rest passes its turn on, in the
-- same script; nothing has to be noticed later for others to go on.
local RQ_RESULT_TTL = 500
local ANSWERS_TTL = 86400
local transition

-- What leaving a state and coming to rest have to know of a record, read once.
local function know(call)
  local got = fields(call, 'queue', 'ikey', 'token', 'tenant', 'waits', 'woken', 'deadline_at', 'lanes', 'turn_key',
    'answers', 'scope', 'hold_duplicates', 'fp')
  return { queue = got[1], job = got[2], token = got[3], tenant = got[4], waits = got[5], woken = got[6],
    deadline_at = got[7], lanes = got[8], turn_key = got[9], answers = got[10], scope = got[11],
    hold_duplicates = got[12], fp = got[13] }
end

local function leave_running(call, tool, about)
  redis.call('ZREM', root .. 'leases', call)
  redis.call('ZREM', 'rq:wip:' .. space .. '.' .. about.queue, about.job .. ':' .. about.token)
  leave_limits(call, tool, about.tenant)
end

local function leave_held(call, tool)
  redis.call('ZREM', root .. 'approvals', call)
  redis.call('ZREM', root .. 'deadlines', call)
  redis.call('SREM', root .. 'without:' .. tool, call)
  redis.call('SREM', root .. 'held_back', call)
end

local function leave_rest(call, tool, about)
  redis.call('ZREM', 'rq:failed:' .. space .. '.' .. about.queue, about.job)
  redis.call('ZREM', root .. 'readback:' .. tool, call)
end

-- What a held call waits for, and until when.
local function wait_held(call, tool, reason, approval_ms)
  if reason == 'approval' or reason == 'duplicate' then
    redis.call('HSET', record_of(call), 'approval_until', whole(now + approval_ms), 'approval_from', whole(now))
    redis.call('ZADD', root .. 'approvals', whole(now + approval_ms), call)
    redis.call('HDEL', record_of(call), 'deadline_at', 'deadline_left') -- the queue's clock starts when a person lets it in
  elseif reason == 'no_worker' then
    redis.call('SADD', root .. 'without:' .. tool, call)
    start_deadline(call)
  elseif reason == 'store_went_back' then
    redis.call('SADD', root .. 'held_back', call)
    redis.call('HSET', record_of(call), 'may_have_run', 1)
    pause_deadline(call)
  elseif reason == 'order' then
    pause_deadline(call)
  end
end

-- The question whether it repeats another call is open for a call that is held already, or has just been moved there.
local function hold_as_duplicate(call, tool, approval_ms)
  leave_held(call, tool)
  redis.call('HSET', record_of(call), 'reason', 'duplicate')
  wait_held(call, tool, 'duplicate', tonumber(approval_ms))
end

-- Is the call first in each of its lanes, with no predecessor still to succeed?
local function is_next(call, lanes, predecessors)
  local is_free = (tonumber(predecessors or '') or 0) == 0
  each(lanes, function(lane)
    local first = redis.call('ZRANGE', root .. 'lane:' .. lane, 0, 0)[1]
    is_free = is_free and (first == nil or first == call)
  end)
  return is_free
end

-- The reason for which a call was held is gone: it queues up, unless it is not its turn yet.
local function free(call, event)
  local got = fields(call, 'lanes', 'predecessors', 'state')
  if got[3] ~= 'held' then
    leave_held(call, event.tool) -- its record is gone: a set that names it must not stop who reads the set
  elseif is_next(call, got[1], got[2]) then
    transition(call, 'held', 'queued', event)
    enqueue(call, 0)
  else
    leave_held(call, event.tool)
    redis.call('HSET', record_of(call), 'reason', 'order')
    wait_held(call, event.tool, 'order')
    note(call, event)
  end
end

local function free_if_next(call)
  local got = fields(call, 'state', 'reason', 'lanes', 'predecessors', 'tool')
  if got[1] == 'held' and got[2] == 'order' and is_next(call, got[3], got[4]) then
    free(call, { op = 'free', actor = 'order', tool = got[5] })
  end
end

-- Whether the call may have run in moments that the store has lost, whatever its attempts say: it was held for that
-- reason, or it waits while the flag stands, or it was admitted before such a loss was accepted. Reads harm nobody.
local function may_have_run(call)
  local got = fields(call, 'may_have_run', 'effect', 'admitted_at')
  if got[1] then
    return true
  end
  local flags = redis.call('HMGET', root .. 'flags', 'went_back', 'loss_accepted_at')
  local is_older = tonumber(flags[2] or '-1') >= tonumber(got[3] or '0')
  if got[2] == 'read' or not (flags[1] or is_older) then
    return false
  end
  redis.call('HSET', record_of(call), 'may_have_run', 1)
  return true
end

local function not_run(call)
  return may_have_run(call) and 'not run since the store has lost writes' or 'not run'
end

local function tell_follower(follower, settled_as)
  local got = fields(follower, 'state', 'tool')
  if got[1] ~= 'held' and got[1] ~= 'queued' then
    return -- cancelled or expired meanwhile
  elseif settled_as == 'succeeded' then
    redis.call('HINCRBY', record_of(follower), 'predecessors', -1)
    free_if_next(follower)
  elseif got[1] == 'held' then
    redis.call('HSET', record_of(follower), 'error', cjson.encode({
      code = 'predecessor', message = not_run(follower) .. ': the call it had to follow ended as ' .. settled_as,
      details = { predecessor_state = settled_as } }))
    transition(follower, 'held', 'refused',
      { op = 'free', actor = 'order', tool = got[2], reason = 'predecessor ' .. settled_as })
  end
end

local function keep_answers(stream)
  redis.call('EXPIRE', stream, ANSWERS_TTL)
end

-- Write what became of the call to the answer streams that inbox entries asked for; they live for a day. Each line is
-- {stream, position, id} as JSON: one call may stand in several entries, under another id and place in each. (Records
-- of 0.1.0 hold the stream's name alone.)
local function tell_harness(call, asking)
  each(asking, function(line)
    local got = fields(call, 'tool', 'state', 'result', 'error', 'marks', 'position', 'call_id', 'may_have_run')
    local marks = got[8] and got[2] ~= 'succeeded' and '{"may_have_run": true}' or got[5] or ''
    local ask = string.sub(line, 1, 1) == '[' and cjson.decode(line) or { line, got[6], got[7] or '' }
    redis.call('XADD', ask[1], '*', 'call', call, 'position', ask[2], 'id', ask[3], 'name', got[1],
      'state', got[2], 'result', got[3] or '', 'error', got[4] or '', 'marks', marks)
    keep_answers(ask[1])
  end)
end

-- RQ's view of a call at rest. RQ forgets a job after a while; it is not brought back as a torso.
local function show_at_rest(job, queue, to)
  local kind = (to == 'failed' or to == 'unknown') and 'failed' or 'finished'
  local registry = 'rq:' .. kind .. ':' .. space .. '.' .. queue
  local seconds = math.floor(now / 1000)
  redis.call('ZREMRANGEBYSCORE', registry, '-inf', seconds)
  if redis.call('EXPIRE', 'rq:job:' .. job, RQ_RESULT_TTL) == 1 then
    redis.call('HSET', 'rq:job:' .. job, 'status', kind)
    redis.call('ZADD', registry, seconds + RQ_RESULT_TTL, job)
  end
end

-- Where equal open calls of a scope find each other, for tools that ask for it.
local function twins_of(scope, print)
  return root .. 'twins:' .. (scope or '') .. '\n' .. print
end

local function join_twins(call)
  local got = fields(call, 'hold_duplicates', 'scope', 'fp')
  if got[1] then
    redis.call('ZADD', twins_of(got[2], got[3]), 'NX', whole(now), call)
  end
end

-- The call has come to rest: its job, its lanes, its followers, those who wait for its turn.
local function arrive(call, to, tool, about)
  show_at_rest(about.job, about.queue, to)
  if about.hold_duplicates and to ~= 'unknown' then
    redis.call('ZREM', twins_of(about.scope, about.fp), call)
  end
  if to == 'succeeded' then
    redis.call('HDEL', root .. 'slips:' .. (about.scope or ''), tool)
  end
  if to ~= 'unknown' and about.lanes then
    each(about.lanes, function(lane)
      redis.call('ZREM', root .. 'lane:' .. lane, call)
      local first = redis.call('ZRANGE', root .. 'lane:' .. lane, 0, 0)[1]
      if first then
        free_if_next(first)
      end
    end)
  end
  local followers = redis.call('SMEMBERS', root .. 'followers:' .. call)
  if followers[1] then
    redis.call('DEL', root .. 'followers:' .. call)
  end
  for _, follower in ipairs(followers) do
    tell_follower(follower, to)
  end
  if about.answers then
    tell_harness(call, about.answers)
  end
  redis.call('PUBLISH', root .. 'wake:' .. about.turn_key, call)
end

-- `more` is what else changes in the record, as name, value, ...
function transition(call, from, to, event, more)
  local about = know(call)
  if from == 'running' then
    leave_running(call, event.tool, about)
  elseif from == 'queued' then
    leave_queue(call, to, about)
  elseif from == 'held' then
    leave_held(call, event.tool)
  else
    leave_rest(call, event.tool, about)
  end
  if to == 'held' then
    redis.call('HSET', 'rq:job:' .. about.job, 'status', 'deferred')
  end
  if to == 'queued' then
    count_queued(about.tenant, 1)
  end
  move(call, from, to, event, more)
  if to == 'unknown' then
    redis.call('ZADD', root .. 'readback:' .. event.tool, whole(now), call)
  end
  if to == 'unknown' or not OPEN[to] then
    arrive(call, to, event.tool, about)
  end
end

-- 'none' where no attempt before can have had an effect: of a mutating call such an attempt leads to unknown, unless
-- someone lets it run again. Else nil.
local function effect_so_far(call, attempts)
  local got = fields(call, 'effect', 'ran_before')
  local none = attempts == 0 or (got[1] == 'mutating' and not got[2])
  return none and not may_have_run(call) and 'none' or nil
end

-- End a call that waits, for good. The words do not claim that nothing ran where an attempt was made, or may have been.
local function end_waiting(call, from, to, event, why)
  local got = fields(call, 'attempt', 'error')
  local attempts = tonumber(got[1] or '') or 0
  local details = { attempts = attempts, reason = event.reason }
  if attempts > 0 then
    why = why .. '; attempts made before: ' .. attempts
    details.last_error = got[2] and got[2] ~= '' and cjson.decode(got[2]).message or nil
  else
    why = not_run(call) .. ': ' .. why
  end
  redis.call('HSET', record_of(call), 'settled_by', event.actor, 'settled_at', whole(now),
    'error', cjson.encode({ code = to, message = why, details = details, effect = effect_so_far(call, attempts) }))
  transition(call, from, to, event)
end

local function expire_queued(call, event)
  end_waiting(call, 'queued', 'expired', event, 'its deadline passed while it waited')
end

-- An attempt ended in a way that may be followed by another; unless a stop was asked for meanwhile.
local function queue_again(call, delay, event, waits_for_replicas)
  redis.call('HDEL', record_of(call), 'progress') -- the message stays: it may be the last that is heard of the call
  transition(call, 'running', 'queued', event)
  if fields(call, 'cancel_requested')[1] == '1' then
    end_waiting(call, 'queued', 'cancelled', { op = 'cancel', actor = event.actor, tool = event.tool },
      'a stop was asked for')
    return 'cancelled'
  end
  enqueue(call, delay, waits_for_replicas)
  return 'queued'
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
    error.effect = got[1] == 'mutating' and effect_so_far(call, tonumber(got[2])) or nil
    redis.call('HSET', record_of(call), 'error', cjson.encode(error), 'settled_by', actor, 'settled_at', whole(now))
    transition(call, 'running', 'failed', event)
    return 'failed'
  end
  redis.call('HSET', record_of(call), 'error', cjson.encode(error))
  return queue_again(call, 0, event)
end

-- Giving a run up is answered the same when it comes twice: nil, or what the call became when this fence gave it up.
local function given_up(call, fence)
  local before = fields(call, 'given_up')[1]
  local at, state = string.match(before or '', '^(%d+) (%a+)$')
  return at == fence and state or nil
end

local function give_up(call, fence, became)
  redis.call('HSET', record_of(call), 'given_up', fence .. ' ' .. became)
  return became
end

-- Mend calls that an index names, each by itself: a record that cannot be mended stops no other. One that is gone leaves
-- the index; one that is broken is looked at again later.
local function mend_each(index, calls, mend)
  local again_ms = 60000
  for _, call in ipairs(calls) do
    local done, why = true, nil
    if redis.call('EXISTS', record_of(call)) == 0 then
      redis.call('ZREM', index, call)
    else
      done, why = pcall(mend, call)
    end
    if not done then
      redis.call('ZADD', index, whole(now + again_ms), call)
      note(call, { op = 'broken', actor = 'recovery', tool = fields(call, 'tool')[1] or '',
        reason = 'its record cannot be mended: ' .. tostring(type(why) == 'table' and why.err or why) })
    end
  end
end
