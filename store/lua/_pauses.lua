-- Prelude: calls whose tool, tenant or queue a person has paused. They stay queued without a pointer, under the name of
-- the setting ("pause <target>"), hold no slot, keep their places in their lanes, and have no queue deadline meanwhile.
-- Invariant: a pause uses up nothing of a queue deadline, whether the call was parked by then or not.
-- uses: history

-- The settings that may pause a call, and the one that does, if any.
local function pauses_of(tool, tenant, queue)
  local names = { 'pause tool:' .. tool, 'pause tenant:' .. (tenant or ''), 'pause queue:' .. queue }
  local set = redis.call('HMGET', CONTROLS, unpack(names))
  for i, name in ipairs(names) do
    if setting_of(set[i]) == 'on' then
      return set, name
    end
  end
  return set, nil
end

-- For how many ms these settings have kept calls from running since a moment; what two did at once counts once.
local function paused_since(set, from)
  local spans, total = {}, 0
  for i = 1, 3 do
    if set[i] then
      local value, about = string.match(set[i], '^(%S+) (.*)$')
      about = cjson.decode(about)
      spans[#spans + 1] = { about.since, value == 'on' and now or about.at }
      for _, span in ipairs(about.earlier or {}) do
        spans[#spans + 1] = span
      end
    end
  end
  table.sort(spans, function(one, other)
    return one[1] < other[1]
  end)
  for _, span in ipairs(spans) do
    total = total + math.max(0, span[2] - math.max(span[1], from))
    from = math.max(from, span[2])
  end
  return total
end

-- What pauses have used up of a call's deadline. They are looked at from when it was queued, or from the last look on.
local function used_up(call, set)
  local got = fields(call, 'queued_at', 'unpaused_at', 'admitted_at')
  return paused_since(set, math.max(tonumber(got[1] or got[3] or '0'), tonumber(got[2] or '0')))
end

-- Let a queued call wait for the end of a pause, with what is left of its deadline.
local function park_paused(call, queue, name, set)
  local woken = fields(call, 'woken')[1]
  pause_deadline(call, used_up(call, set))
  park(call, queue, name)
  redis.call('HSET', record_of(call), 'reason', 'paused')
  if woken then
    rates().pass_on(woken) -- what it was woken for is still free
  end
end

-- The deadline of a call has passed: where a pause has used up some of it, that is given again. Whether it waits on.
local function prolong_deadline(call, set)
  local deadline = tonumber(fields(call, 'deadline_at')[1] or '')
  local given = deadline and deadline + used_up(call, set) or 0
  if given <= now then
    return false
  end
  redis.call('HSET', record_of(call), 'deadline_at', whole(given), 'unpaused_at', now_text)
  redis.call('ZADD', root .. 'deadlines', whole(given), call)
  return true
end

-- The line that a call's history gets when it comes back: who has ended the pause, and who had begun it. Events are none
-- of it: many calls come back at once, and would push all others out of the stream.
local function resumed(name, stored)
  local about = stored and cjson.decode(string.match(stored, ' (.*)$')) or { by = 'recovery' }
  local seconds = about.since and math.floor((about.at - about.since) / 1000) or 0
  local why = about.reason and about.reason ~= '' and about.reason .. '; ' or ''
  return cjson.encode({ at = now, op = 'resume', actor = about.by, reason = why .. string.sub(name, 7)
    .. ' was paused for ' .. seconds .. ' s by ' .. (about.paused_by or '?') })
end

local function bring_one_back(call, line)
  local got = fields(call, 'queue', 'fp', 'not_before')
  write_history_out(call)
  keep_line(call, line)
  redis.call('HDEL', record_of(call), 'waits')
  redis.call('HSET', record_of(call), 'reason', '', 'unpaused_at', now_text)
  start_deadline(call)
  if tonumber(got[3] or '0') > now then
    redis.call('ZADD', root .. 'delayed', got[3], call)
  else
    line_up(call, got[1], job_of(call, got[2]))
  end
end

-- Bring the oldest parked calls back behind those in line, unless the pause lasts. Returns how many there were.
local function bring_back(name, most)
  local stored = redis.call('HGET', CONTROLS, name)
  if setting_of(stored) == 'on' then
    return 0
  end
  local line = resumed(name, stored)
  local waiting = root .. 'waiting:' .. name
  local oldest = redis.call('ZRANGE', waiting, 0, most - 1)
  for _, call in ipairs(oldest) do
    redis.call('ZREM', waiting, call)
    if redis.call('EXISTS', record_of(call)) == 1 then
      bring_one_back(call, line)
    end
  end
  if redis.call('EXISTS', waiting) == 0 then
    redis.call('SREM', root .. 'saturated_limits', name)
  end
  return #oldest
end
