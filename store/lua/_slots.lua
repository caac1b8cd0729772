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

-- What is set for a call, in one command: the setting that pauses it, its tool's limit and its tenant's, its tool's rate, and
-- whether some limit is new. The first three of `all` are the pauses that may concern it.
local function controls_for(limits, queue)
  local pauses = { 'pause ' .. limits[1], 'pause ' .. limits[2], 'pause queue:' .. queue }
  local all = redis.call('HMGET', CONTROLS, pauses[1], pauses[2], pauses[3], 'limit ' .. limits[1],
    'code limit ' .. limits[1], 'limit ' .. limits[2], 'limit tenant:*', 'uncounted', 'rate ' .. limits[1],
    'code rate ' .. limits[1])
  local set = { setting_of(all[4] or all[5]), setting_of(all[6] or all[7]), is_new = all[8], rate = all[9] or all[10],
    all = all }
  for i, pause in ipairs(pauses) do
    if all[i] and setting_of(all[i]) == 'on' then
      set.pause = set.pause or pause
    end
  end
  return set
end

-- Wake the calls that have waited longest for a slot of this limit; returns how many there were.
local function wake_waiting(limit, most)
  local first = redis.call('ZPOPMIN', root .. 'waiting:' .. limit, most)
  for i = #first - 1, 1, -2 do -- the last one first: each goes to the front of its queue
    local call = first[i]
    local got = fields(call, 'queue', 'fp')
    if got[1] and got[2] then -- else its record is gone
      redis.call('HDEL', record_of(call), 'waits')
      redis.call('HSET', record_of(call), 'woken', limit, 'woken_at', now_text)
      if string.sub(limit, 1, 5) == 'rate:' then
        redis.call('ZADD', root .. 'woken:' .. limit, now_text, call)
      end
      push(call, got[1], job_of(call, got[2]), first[i + 1])
    end
  end
  if redis.call('EXISTS', root .. 'waiting:' .. limit) == 0 then
    redis.call('SREM', root .. (string.sub(limit, 1, 5) == 'rate:' and 'saturated_rates' or 'saturated_limits'), limit)
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
    local got = fields(first[i], 'queue', 'fp')
    redis.call('HDEL', record_of(first[i]), 'waits')
    push(first[i], got[1], job_of(first[i], got[2]))
  end
  if redis.call('EXISTS', waiting) == 0 then
    redis.call('SREM', root .. 'saturated_limits', REPLICAS)
  end
  return #first / 2
end
