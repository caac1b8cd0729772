-- Prelude: how many calls may wait, in a queue and of a tenant, before new ones are refused. What people have set wins over
-- what the harness was told, in both directions.
-- uses: submission controls

local has_queue_limits = nil -- by people; `admit` says so

-- The limit for a target, and 1 where it is by people. Each target is looked up once, and only where people have set any.
local limits_found = {}
local function limit_for(target, default, given)
  if not has_queue_limits then
    return given, 0
  end
  if limits_found[target] == nil then
    local set = redis.call('HMGET', CONTROLS, 'queue-limit ' .. target, default and 'queue-limit ' .. default or target)
    limits_found[target] = setting_of(set[1] or set[2]) or false
  end
  return tonumber(limits_found[target] or given), limits_found[target] and 1 or 0
end

local lengths = {}
local function length_of(queue)
  lengths[queue] = lengths[queue] or redis.call('LLEN', queue_key(queue))
  return lengths[queue]
end

-- What a new call is refused with; nil where there is room for it.
local queued_by
local function full_for(spec)
  local asked = spec.asked
  if spec.state == 'refused' or not (has_queue_limits or queue_limit > 0 or tenant_limit > 0) then
    return nil
  end
  local limit, by_people = limit_for('queue:' .. asked.queue, nil, queue_limit)
  if limit > 0 and length_of(asked.queue) >= limit then
    return { 'full', 'queue', asked.queue, limit, by_people }
  end
  limit, by_people = limit_for('tenant:' .. asked.tenant, 'tenant:*', tenant_limit)
  if limit > 0 then
    queued_by = queued_by or tonumber(redis.call('HGET', root .. 'queued_by_tenant', asked.tenant) or '0')
    if queued_by >= limit then
      return { 'full', 'tenant', asked.tenant, limit, by_people }
    end
  end
end
