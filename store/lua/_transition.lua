-- Prelude: one change of state with all that follows from it, in one script.
-- uses: held at_rest following
-- Invariant: a call that leaves running passes its slots on; nothing has to be noticed later for others to go on.

-- What leaving a state and coming to rest have to know of a record, read once.
local function load_context(call)
  local got = fields(call, 'queue', 'fp', 'token', 'tenant', 'waits', 'woken', 'deadline_at', 'lanes', 'turn_key',
    'answers', 'scope', 'unique', 'hold_duplicates')
  return { queue = got[1], job = job_of(call, got[2]), token = got[3], tenant = got[4], waits = got[5], woken = got[6],
    deadline_at = got[7], lanes = got[8], turn_key = got[9], answers = got[10], scope = got[11],
    unique = got[12], hold_duplicates = got[13] }
end

local function leave_running(call, tool, about)
  redis.call('ZREM', root .. 'leases', call)
  if not about.is_shown_by_worker then
    redis.call('ZREM', rq .. 'wip:' .. space .. '.' .. about.queue, about.job .. ':' .. about.token)
  end
  leave_limits(call, tool, about.tenant)
end

local function leave_rest(call, tool, about)
  redis.call('ZREM', rq .. 'failed:' .. space .. '.' .. about.queue, about.job)
  redis.call('ZREM', root .. 'reconcile:' .. tool, call)
end

-- `more` is what else changes in the record, as name, value, ...
function transition(call, from, to, event, more)
  local about = load_context(call)
  about.is_shown_by_worker = from == 'running' and event.op == 'settle' -- to RQ, with its heartbeat
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
    redis.call('HSET', rq .. 'job:' .. about.job, 'status', 'deferred')
  end
  if to == 'queued' then
    count_queued(about.tenant, 1)
  end
  move(call, from, to, event, more)
  if to == 'unknown' then
    redis.call('ZADD', root .. 'reconcile:' .. event.tool, now_text, call)
  end
  if to == 'unknown' or not OPEN[to] then
    about.op = event.op
    on_rest(call, to, event.tool, about)
  elseif from == 'unknown' and about.unique and not about.hold_duplicates then
    following().advance_followers(about.unique)
  end
end
