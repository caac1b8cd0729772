-- Prelude: what has happened to a call, for people.
-- uses: batch
local HISTORY_KEPT = 100

local function keep_line(call, line)
  local history = root .. 'history:' .. call
  if redis.call('RPUSH', history, line) > HISTORY_KEPT then
    redis.call('LPOP', history)
  end
end

-- The history of a call to which only the usual has happened (queued, claimed, settled) is not stored: its record says
-- the same. It is written out before the first thing that the record does not say.
local function write_history_out(call)
  local got = fields(call, 'history', 'admitted_at', 'tool', 'claimed_at', 'worker', 'fence', 'attempt', 'state', 'changed_at',
    'forgotten')
  if got[1] or got[10] or not got[2] then
    return
  end
  local fence, attempt = tonumber(got[6] or ''), tonumber(got[7] or '')
  redis.call('HSET', record_of(call), 'history', 1)
  if redis.call('EXISTS', root .. 'history:' .. call) == 1 then
    return -- of a release that stored each line
  end
  keep_line(call, cjson.encode({ op = 'admit', actor = 'submit', at = tonumber(got[2]), to = 'queued', tool = got[3] }))
  if got[4] then
    keep_line(call, cjson.encode({ op = 'claim', actor = got[5], at = tonumber(got[4]), from = 'queued', to = 'running',
      tool = got[3], fence = fence, attempt = attempt }))
  end
  if got[4] and not OPEN[got[8]] then
    keep_line(call, cjson.encode({ op = 'settle', actor = got[5], at = tonumber(got[9]), from = 'running', to = got[8],
      tool = got[3], fence = fence, attempt = attempt }))
  end
end

-- Append one event to the namespace's stream and to the history of its call, which is stored from now on.
local function keep_event(call, event)
  event.at = now
  event.fence, event.attempt = tonumber(event.fence or ''), tonumber(event.attempt or '')
  local line = cjson.encode(event)
  publish(call, line)
  keep_line(call, line)
end

local function note(call, event)
  write_history_out(call)
  keep_event(call, event)
end

local function is_equal(one, other)
  if type(one) ~= 'table' or type(other) ~= 'table' then
    return one == other
  end
  return one.type == other.type and one.message == other.message and one.file == other.file and one.line == other.line
end

-- What has just happened in the same way as the time before is one line of the history, and counts. `span` is how many
-- lines each time leaves: the last of them tells how it ended.
local function fold(call, span)
  local history = root .. 'history:' .. call
  local lines = redis.call('LRANGE', history, -2 * span, -1)
  if #lines < 2 * span then
    return
  end
  local before, latest = cjson.decode(lines[span]), cjson.decode(lines[2 * span])
  if before.op ~= latest.op or before.reason ~= latest.reason or not is_equal(before.exception, latest.exception) then
    return
  end
  latest.count, latest.first_at = (before.count or 1) + 1, before.first_at or before.at
  redis.call('LTRIM', history, 0, -2 * span - 1)
  for i = span + 1, 2 * span - 1 do
    redis.call('RPUSH', history, lines[i])
  end
  redis.call('RPUSH', history, cjson.encode(latest))
end
