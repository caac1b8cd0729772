-- Prelude: rates (rate:tool:<name>): how many calls of a tool may start in a time, and which calls wait for that.
-- uses: slots
-- A bucket is the moment (microseconds of Redis time) from which on the next start keeps the rate exactly. A start may be
-- a little early, so that one that was late costs nothing; to make up for it all starts are a little further apart than
-- the rate says: so no window of the rate's own time, or of a minute where that is longer, has more starts than the rate
-- allows. A claim takes a start; one that is given back before its handler was entered returns it.
-- Invariant: a call that was woken for a start leaves it to nobody else until it is claimed, or has not come for a while.
local RATE = 'rate:'
local WOKEN_MS = 10000
local AHEAD = 100 -- pointers behind a call over its rate that are looked at with it

local function is_rate(limit)
  return string.sub(limit, 1, #RATE) == RATE
end

-- "100/60000", calls in ms, as microseconds from one start to the next and microseconds that a start may be early.
local function read_rate(stored)
  local calls, period = string.match(stored or '', '^(%d+)/(%d+)')
  if not calls then
    return nil
  end
  local span = tonumber(period) * 1000
  return { every = math.ceil(span * 201 / (200 * tonumber(calls))), early = math.max(span / 200, 50000) }
end

-- The rate, and the most calls of its tool at once.
local function in_force(limit)
  local target = string.sub(limit, #RATE + 1)
  local set = redis.call('HMGET', CONTROLS, 'rate ' .. target, 'code rate ' .. target, 'limit ' .. target,
    'code limit ' .. target)
  return read_rate(set[1] or set[2]), tonumber(string.match(set[3] or set[4] or '', '^%d+'))
end

-- The bucket as it counts now. A moment that no start by this clock can have set, since the clock went back or the rate
-- was another one, is cut.
local function bucket_of(limit, rate)
  local at, latest = tonumber(redis.call('HGET', root .. 'buckets', limit) or '0'), micros + rate.early + rate.every
  if at > latest then
    redis.call('HSET', root .. 'buckets', limit, whole(latest))
  end
  return math.max(micros, math.min(at, latest))
end

local function starts_left(at, rate)
  return at - micros > rate.early and 0 or math.floor((micros + rate.early - at) / rate.every) + 1
end

local function take_start(limit, stored)
  local rate = read_rate(stored)
  redis.call('HSET', root .. 'buckets', limit, whole(bucket_of(limit, rate) + rate.every))
end

-- The claim of a call is given back, and its handler was not entered.
local function give_start_back(tool)
  local limit = RATE .. 'tool:' .. tool
  local rate = in_force(limit)
  local at = tonumber(redis.call('HGET', root .. 'buckets', limit) or '')
  if rate and at then
    redis.call('HSET', root .. 'buckets', limit, whole(at - rate.every))
  end
end

local function woken_for(limit)
  return redis.call('ZCOUNT', root .. 'woken:' .. limit, whole(now - WOKEN_MS), whole(now + WOKEN_MS))
end

-- Microseconds until the next start that no woken call is to have; nil where one is there.
local function time_to_start(limit, rate)
  local due = bucket_of(limit, rate) + woken_for(limit) * rate.every - rate.early - micros
  return due > 0 and math.max(due, rate.early / 4) or nil
end

-- Wake as many as may start. Returns how many, and the microseconds until the next one may: nil where that is no question
-- of time, since nobody waits or their tool has no free slot.
local function wake_for_starts(limit, most)
  local rate, cap = in_force(limit)
  if not rate then
    return wake_waiting(limit, most)
  end
  local room = cap and cap - redis.call('SCARD', root .. 'slots:' .. string.sub(limit, #RATE + 1)) or math.huge
  local free = math.min(starts_left(bucket_of(limit, rate), rate), room) - woken_for(limit)
  local woken = free > 0 and wake_waiting(limit, math.min(free, most)) or 0
  return woken, redis.call('EXISTS', root .. 'waiting:' .. limit) == 1 and time_to_start(limit, rate) or nil
end

-- May a claim start its call? Those that wait come before it: they are woken for what is there.
local function may_start(limit, stored, is_woken)
  local rate = read_rate(stored)
  local left = starts_left(bucket_of(limit, rate), rate)
  if left < 1 or is_woken then
    return left > 0
  elseif redis.call('EXISTS', root .. 'waiting:' .. limit) == 1 then
    wake_for_starts(limit, AHEAD)
  end
  return redis.call('EXISTS', root .. 'waiting:' .. limit) == 0 and left > woken_for(limit)
end

-- What a woken call leaves unused goes to the next in line.
local function pass_on(limit)
  if is_rate(limit) then
    wake_for_starts(limit, 1)
  else
    wake_waiting(limit, 1)
  end
end

local function forget_woken(call, limit)
  if is_rate(limit) then
    redis.call('ZREM', root .. 'woken:' .. limit, call)
  end
end

-- The pointers behind a call over its rate that would be taken only to wait with it, which costs a claim each.
local function park_with(queue, tool, limit, park)
  local list, others = queue_key(queue), {}
  for _, job in ipairs(redis.call('LPOP', list, AHEAD) or {}) do
    local call = string.sub(job, 1, 32)
    local got = fields(call, 'tool', 'state', 'woken', 'fp')
    if got[1] == tool and got[2] == 'queued' and not got[3] and job_of(call, got[4]) == job then
      park(call, queue, limit)
    else
      table.insert(others, 1, job)
    end
  end
  if others[1] then
    redis.call('LPUSH', list, unpack(others))
  end
end

-- Set a call over its rate aside, and those behind it that would be taken only to be set aside as well. Returns the ms until
-- the next may start, or -1.
local function park_for_start(call, queue, limit, about, park)
  park(call, queue, limit)
  redis.call('HSET', root .. 'flags', 'rates_wait', 1) -- admission sets the next ones aside at once
  if not about.woken then
    park_with(queue, about.tool, limit, park)
  elseif about.woken ~= limit then
    pass_on(about.woken)
  end
  local due = time_to_start(limit, read_rate(about.rate))
  return due and math.ceil(due / 1000) or -1
end
