-- Prelude: how an attempt or a wait ends other than by its outcome. Lost attempts, deadlines, stops, runs given up.
-- uses: fence queue transition pauses limiting

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
  redis.call('HSET', record_of(call), 'settled_by', event.actor, 'settled_at', now_text,
    'error', cjson.encode({ code = to, message = why, details = details, effect = effect_so_far(call, attempts) }))
  transition(call, from, to, event)
end

-- The queue deadline of a call has passed. It is expired; but a paused one is parked, and one that a pause has kept from
-- running has that time again. What a claim answers; nil where the call waits on.
local function meet_deadline(call, event)
  local got = fields(call, 'state', 'tool', 'tenant', 'queue')
  local set, pause = pauses_of(got[2], got[3], got[4])
  if pause then
    if got[1] == 'held' then
      event.op, event.reason = 'free', 'paused'
      transition(call, 'held', 'queued', event)
    end
    park_paused(call, got[4], pause, set)
    return { 'parked', pause }
  elseif prolong_deadline(call, set) then
    return nil
  end
  event.op = 'expire'
  end_waiting(call, got[1], 'expired', event, got[1] == 'held' and 'no worker served its tool in time'
    or 'its deadline passed while it waited')
  return { 'settled', 'expired' }
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
  local got = fields(call, 'effect', 'attempt', 'attempt_limit', 'deadline_at', 'begins', 'begun', 'tool', 'fence',
    'max_attempts')
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
  if late or tonumber(got[2]) >= tonumber(got[3] or got[9]) then
    error.code = late and 'deadline_exceeded' or 'attempts_exhausted'
    error.message = why .. (late and '; its deadline has passed' or '; no attempts are left')
    error.effect = got[1] == 'mutating' and effect_so_far(call, tonumber(got[2])) or nil
    redis.call('HSET', record_of(call), 'error', cjson.encode(error), 'settled_by', actor, 'settled_at', now_text)
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

-- Repair calls that an index names, each by itself: a record that cannot be repaired stops no other. One that is gone leaves
-- the index; one that is broken is looked at again later.
local function repair_each(index, calls, repair)
  local again_ms = 60000
  for _, call in ipairs(calls) do
    local done, why = true, nil
    if redis.call('EXISTS', record_of(call)) == 0 then
      redis.call('ZREM', index, call)
    else
      done, why = pcall(repair, call)
    end
    if not done then
      redis.call('ZADD', index, whole(now + again_ms), call)
      note(call, { op = 'broken', actor = 'recovery', tool = fields(call, 'tool')[1] or '',
        reason = 'its record cannot be step_result: ' .. tostring(type(why) == 'table' and why.err or why) })
    end
  end
end
