-- Prelude: the names of keys, Redis time, and the one way in which a call changes its state.
-- Every script starts with it. Keys of records are found inside the scripts, so all are derived from KEYS[1],
-- the namespace's root ("{toolonce}:"). Its braces are a hash tag: all keys of a namespace, RQ's too, lie in one slot.
local root = KEYS[1]
local space = string.sub(root, 2, -3)
local rq = root .. 'rq:'
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
local micros = tonumber(clock[1]) * 1000000 + tonumber(clock[2])
local moves = 0

local OPEN = { held = true, queued = true, running = true, unknown = true }
local HISTORY_KEPT = 100
local NEVER_RUN = { refused = true, cancelled = true, expired = true }
local ARGUMENTS_KEPT = 1024

local function whole(number)
  return string.format('%.0f', number)
end

local function record_of(call)
  return root .. 'call:' .. call
end

-- The name of its RQ job, and what handlers forward downstream: its key, and its fingerprint.
local function job_of(call, fingerprint)
  return call .. '-' .. (fingerprint or '')
end

local function fields(call, ...)
  return redis.call('HMGET', record_of(call), ...)
end

-- Append one event to the namespace's capped stream and to the call's own history.
local function note(call, event)
  event.at = now
  event.fence, event.attempt = tonumber(event.fence or ''), tonumber(event.attempt or '')
  local line = cjson.encode(event)
  local history = root .. 'history:' .. call
  if redis.call('RPUSH', history, line) > HISTORY_KEPT then
    redis.call('LPOP', history)
  end
  redis.call('XADD', root .. 'events', 'MAXLEN', '~', '100000', '*', 'call', call, 'event', line)
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

-- Per tool only: whoever reads adds them up, so that no state is counted twice on the way of each call.
local function count(tool, state, by)
  redis.call('HINCRBY', root .. 'counts', 'tool:' .. state .. ':' .. tool, by)
end

-- A refused call may name a tool that a model made up: all of those are counted under one name.
local function counted_as(tool, from, to)
  local is_made_up = not from and to == 'refused' and redis.call('HEXISTS', root .. 'newest', tool) == 0
  return is_made_up and '?' or tool
end

-- The moment of a move for its index, ms with three decimals. Redis' clock stands still within a script: each further
-- move counts as one microsecond later, and takes longer than that, so that no two moves share a moment, also not of two
-- scripts. A double holds such numbers exactly enough until the year 2255.
local function moment()
  moves = moves + 1
  return string.format('%.3f', (micros + moves - 1) / 1000)
end

-- What ends without having run gives its arguments back, but for a beginning to look at: nothing will need them.
local function give_arguments_back(call)
  local got = fields(call, 'args', 'attempt')
  local args = got[1]
  if args and #args > ARGUMENTS_KEPT and (tonumber(got[2] or '') or 0) == 0 then
    local kept = string.sub(args, 1, ARGUMENTS_KEPT)
    if string.find(args, '^[\128-\191]', ARGUMENTS_KEPT + 1) then
      kept = string.gsub(kept, '[\192-\255]?[\128-\191]*$', '') -- no half of a character
    end
    redis.call('HSET', record_of(call), 'args', cjson.encode({ ['$cut'] = kept, bytes = #args }))
  end
end

-- Change the state: record, index, counters, history. `event` needs tool and op; from is false at admission. `more` is
-- what else changes in the record, as name, value, ...: one write is cheaper than two.
local function move(call, from, to, event, more)
  redis.call('HSET', record_of(call), 'state', to, 'changed_at', whole(now), 'reason', event.reason or '',
    unpack(more or {}))
  if NEVER_RUN[to] then
    give_arguments_back(call)
  end
  if from then
    redis.call('ZREM', root .. 'in:' .. from, call)
    count(event.tool, from, -1)
  else
    redis.call('HINCRBY', root .. 'counts', 'admitted', 1)
  end
  redis.call('ZADD', root .. 'in:' .. to, moment(), call)
  local counted = counted_as(event.tool, from, to)
  count(counted, to, 1)
  event.counted_as = counted ~= event.tool and counted or nil
  if not OPEN[to] and (not from or OPEN[from]) then
    redis.call('HINCRBY', root .. 'counts', 'settled', 1)
  elseif OPEN[to] and from and not OPEN[from] then
    redis.call('HINCRBY', root .. 'counts', 'settled', -1)
  end
  event.from = from or nil
  event.to = to
  note(call, event)
end

-- One answer to an inbox entry, in the form of PROTOCOL.md; what is left out of `told` is empty.
local function write_answer(stream, told)
  redis.call('XADD', stream, '*', 'call', told.call, 'position', told.position, 'id', told.id or '', 'name', told.name,
    'state', told.state, 'result', told.result or '', 'error', told.error or '', 'marks', told.marks or '',
    'reply_id', told.reply_id or '')
end
