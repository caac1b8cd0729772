-- Prelude: calls that are held. What each waits for, until when, and whether it is its turn in its lanes.
-- uses: moves
local transition

local function leave_held(call, tool)
  redis.call('ZREM', root .. 'approvals', call)
  redis.call('ZREM', root .. 'deadlines', call)
  redis.call('SREM', root .. 'no_worker:' .. tool, call)
  redis.call('SREM', root .. 'held_back', call)
end

-- What a held call waits for, and until when.
local function wait_held(call, tool, reason, approval_ms)
  if reason == 'approval' or reason == 'duplicate' then
    redis.call('HSET', record_of(call), 'approval_until', whole(now + approval_ms), 'approval_from', now_text)
    redis.call('ZADD', root .. 'approvals', whole(now + approval_ms), call)
    redis.call('HDEL', record_of(call), 'deadline_at', 'deadline_left') -- the queue's clock starts when a person lets it in
  elseif reason == 'no_worker' then
    redis.call('SADD', root .. 'no_worker:' .. tool, call)
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
