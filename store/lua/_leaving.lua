-- Prelude: a call leaves the queue in which it stands in line.

-- A tenant's queued calls, wherever they wait; counted as they enter and leave the state, for the limit of its share.
local function count_queued(tenant, by)
  local counts = root .. 'queued_by_tenant'
  if redis.call('HINCRBY', counts, tenant or '', by) <= 0 then
    redis.call('HDEL', counts, tenant or '')
  end
end

-- `about` is what the record says: queue, tenant, deadline_at.
local function leave_line(call, about)
  count_queued(about.tenant, -1)
  if redis.call('ZREM', root .. 'pushed:' .. about.queue, call) == 0 then
    redis.call('ZREM', root .. 'delayed', call)
  end
  if about.deadline_at then
    redis.call('ZREM', root .. 'deadlines', call)
  end
end
