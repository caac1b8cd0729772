-- Prelude: the slots of limits (tool:<name>, tenant:<name>), and who waits for them.
-- uses: push controls
-- Invariant: a slot that falls free wakes who has waited longest; one who was woken and does not take it passes the
-- wake-up on.
local REPLICAS = 'replicas' -- what mutating calls wait for, like a limit, while too few replicas answer

-- The limits that count for a call. What has no cap costs nothing but the look.
local function limits_of(tool, tenant)
  return { 'tool:' .. tool, 'tenant:' .. (tenant or '') }
end

local function room_under(cap, limit)
  return cap and tonumber(cap) - redis.call('SCARD', root .. 'slots:' .. limit) or math.huge
end

local function cap_of(limit)
  local is_of_tenant = string.sub(limit, 1, 7) == 'tenant:'
  local set = redis.call('HMGET', CONTROLS, 'limit ' .. limit, is_of_tenant and 'limit tenant:*' or 'code limit ' .. limit)
  return setting_of(set[1] or set[2])
end

local function room_in(limit)
  return room_under(cap_of(limit), limit)
end

-- Give a slot to each running call that has none, since its limit is newer than its claim: there are no more of them than
-- slots of workers.
local function count_running()
  local caps = {}
  for _, call in ipairs(redis.call('ZRANGE', root .. 'in:running', 0, -1)) do
    local got = fields(call, 'tool', 'tenant')
    for _, limit in ipairs(limits_of(got[1] or '', got[2])) do
      if caps[limit] == nil then
        caps[limit] = cap_of(limit) or false
      end
      if caps[limit] then
        redis.call('SADD', root .. 'slots:' .. limit, call)
      end
    end
  end
  redis.call('HDEL', CONTROLS, 'uncounted')
end

-- How many more calls the two limits of a call let run, math.huge where there is no cap; or, first, the setting that
-- pauses it. All of it is one command.
local function room_for(limits, queue)
  local pauses = { 'pause ' .. limits[1], 'pause ' .. limits[2], 'pause queue:' .. queue }
  local set = redis.call('HMGET', CONTROLS, pauses[1], pauses[2], pauses[3], 'limit ' .. limits[1],
    'code limit ' .. limits[1], 'limit ' .. limits[2], 'limit tenant:*', 'uncounted')
  for i, pause in ipairs(pauses) do
    if set[i] and setting_of(set[i]) == 'on' then
      return nil, pause, set
    end
  end
  if set[8] then
    count_running()
  end
  return { room_under(setting_of(set[4] or set[5]), limits[1]), room_under(setting_of(set[6] or set[7]), limits[2]) }
end

-- Wake the calls that have waited longest for a slot of this limit; returns how many there were.
local function wake_waiting(limit, most)
  local first = redis.call('ZPOPMIN', root .. 'waiting:' .. limit, most)
  for i = #first - 1, 1, -2 do -- the last one first: each goes to the front of its queue
    local call = first[i]
    local got = fields(call, 'queue', 'ikey')
    if got[1] and got[2] then -- else its record is gone
      redis.call('HDEL', record_of(call), 'waits')
      redis.call('HSET', record_of(call), 'woken', limit, 'woken_at', whole(now))
      push(call, got[1], got[2], first[i + 1])
    end
  end
  if redis.call('EXISTS', root .. 'waiting:' .. limit) == 0 then
    redis.call('SREM', root .. 'saturated_limits', limit)
  end
  return #first / 2
end

-- Wake as many as there is room for; for what no single slot tells of: a cap that was raised, a woken call that
-- nobody comes to claim.
local function wake_into_free_slots(limit, most)
  return wake_waiting(limit, math.max(0, math.min(room_in(limit), most)))
end

-- Set those going that wait for replicas, in their order, behind the calls that are in line.
local function resume(most)
  local waiting = root .. 'waiting:' .. REPLICAS
  local first = redis.call('ZPOPMIN', waiting, most)
  for i = 1, #first - 1, 2 do
    local got = fields(first[i], 'queue', 'ikey')
    redis.call('HDEL', record_of(first[i]), 'waits')
    push(first[i], got[1], got[2])
  end
  if redis.call('EXISTS', waiting) == 0 then
    redis.call('SREM', root .. 'saturated_limits', REPLICAS)
  end
  return #first / 2
end

local function leave_limits(call, tool, tenant)
  local limits = limits_of(tool, tenant)
  if redis.call('EXISTS', root .. 'slots:' .. limits[1], root .. 'slots:' .. limits[2]) == 0 then
    return
  end
  for _, limit in ipairs(limits) do
    if redis.call('SREM', root .. 'slots:' .. limit, call) == 1 then
      wake_waiting(limit, 1)
    end
  end
end
