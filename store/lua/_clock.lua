-- Prelude: what is known of the server's clock. A lease is an end by one server's clock. Where that clock went back, or
-- another server has taken over, every lease is granted again for its own length: none is reclaimed before its holder could
-- ask for it, and none of a dead worker is longer than it was.
local TOLERATED_MS = 1000 -- also how exactly the highest time is kept: written at most once a second
local DEFAULT_LEASE_MS = 30000 -- where the record does not say; the worker's default

local function server_id()
  local said = redis.pcall('INFO', 'server')
  return type(said) == 'string' and string.match(said, 'run_id:(%w+)') or nil
end

local function lease_of(call)
  return tonumber(fields(call, 'lease')[1] or '') or DEFAULT_LEASE_MS
end

-- By how much the last lease ends later than it can have been given by this clock; 0 or less where it fits.
local function overlong()
  local last = redis.call('ZREVRANGE', root .. 'leases', 0, 0, 'WITHSCORES')
  return last[2] and tonumber(last[2]) - now - lease_of(last[1]) or 0
end

-- Returns how many leases were granted again. All in one step: there are no more than slots of workers.
local function look_at_clock()
  local known = redis.call('HMGET', root .. 'marks', 'clock', 'server')
  local highest, server = tonumber(known[1] or '0'), server_id()
  local back = math.max(highest - now, overlong())
  local is_back, is_other = back > TOLERATED_MS, known[2] and server and known[2] ~= server
  if is_back or is_other or now - highest > TOLERATED_MS or (server and not known[2]) then
    redis.call('HSET', root .. 'marks', 'clock', now_text, 'server', server or known[2] or '')
  end
  if is_back then
    redis.call('HSET', root .. 'flags', 'clock_back_at', now_text, 'clock_back_by', whole(back))
    redis.call('HSET', root .. 'marks', 'cut_delayed', now_text, 'cut_deadlines', now_text, 'cut_approvals', now_text)
  end
  local given = 0
  if is_back or is_other then
    for _, call in ipairs(redis.call('ZRANGE', root .. 'leases', 0, -1)) do
      redis.call('ZADD', root .. 'leases', whole(now + lease_of(call)), call)
      given = given + 1
    end
  end
  return given
end

-- For how long this was to wait, from the moment in which it was told to.
local function span_of(call, field, since)
  local got = fields(call, field, since)
  return math.max(0, tonumber(got[1] or '0') - tonumber(got[2] or '0'))
end

-- Nothing is due later than its whole span from now. `since` is the field with the moment in which it began to wait; for
-- deadlines the span itself is stored, and what was used up of it before the step back is given again.
local function cut_one(call, at, field, since)
  local span = since and span_of(call, field, since) or tonumber(fields(call, 'deadline_ms')[1])
  if at > now + span then
    redis.call('HSET', record_of(call), field, whole(now + span), since or 'clock_back_at', now_text)
    return whole(now + span)
  end
end

-- One bounded step through what is due later than now, from the border on where the last step ended.
local function cut(kind, field, since, most)
  local mark, index = 'cut_' .. kind, root .. kind
  local border = redis.call('HGET', root .. 'marks', mark)
  if not border then
    return
  end
  local found = redis.call('ZRANGEBYSCORE', index, '(' .. border, '+inf', 'WITHSCORES', 'LIMIT', 0, most)
  local last = found[#found]
  if #found == 2 * most then -- all that are due in the last moment
    found = redis.call('ZRANGEBYSCORE', index, '(' .. border, last, 'WITHSCORES')
    redis.call('HSET', root .. 'marks', mark, last)
  else
    redis.call('HDEL', root .. 'marks', mark)
  end
  for i = 1, #found, 2 do
    local at = cut_one(found[i], tonumber(found[i + 1]), field, since)
    if at then
      redis.call('ZADD', index, at, found[i])
    end
  end
end

local function cut_overlong(most)
  cut('delayed', 'not_before', 'queued_at', most)
  cut('approvals', 'approval_until', 'approval_from', most)
  cut('deadlines', 'deadline_at', nil, most)
end
