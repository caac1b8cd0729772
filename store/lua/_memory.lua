-- Prelude: whether memory runs short. Open calls will still write: its outcome, its history, its events. That much is
-- kept free of new calls, so that what was admitted can be claimed, run and settled. What an open call still writes,
-- its result apart. Measured: 900 bytes for a plain one, and 1,100 more where its result is too long for the compact
-- form of the record.
local OPEN_CALL_BYTES = 3072
local RESULTS_LOOKED_AT = 20
local STOP, RESUME = 900, 850 -- per mille of what is allowed
local EVENTS_WHEN_SHORT = 10000
local LOOK_MS, UNLIMITED_LOOK_MS = 50, 1000

-- Bytes that the open calls will still write. The newest results tell how large theirs may be: a guess, which by itself
-- keeps no more than a quarter of what is allowed.
local function bytes_to_come(allowed)
  local newest, results = redis.call('ZREVRANGE', root .. 'in:succeeded', 0, RESULTS_LOOKED_AT - 1), 0
  for _, call in ipairs(newest) do
    results = results + redis.call('HSTRLEN', record_of(call), 'result')
  end
  local open = 0
  for state in pairs(OPEN) do
    open = open + redis.call('ZCARD', root .. (state == 'running' and 'leases' or 'in:' .. state))
  end
  return open * OPEN_CALL_BYTES + math.min(open * results / math.max(1, #newest), allowed / 4)
end

-- Raise or lower the flag; between the two marks it stays as it is. Returns whether it stands.
local function mark_memory(used, allowed, stop, resume)
  local filled = allowed > 0 and (used + bytes_to_come(allowed)) * 1000 / allowed or 0
  if filled >= stop then
    if redis.call('HSETNX', root .. 'flags', 'full', now_text) == 1 then
      redis.call('XTRIM', root .. 'events', 'MAXLEN', '~', EVENTS_WHEN_SHORT)
    end
  elseif filled < resume then
    redis.call('HDEL', root .. 'flags', 'full')
  end
  return redis.call('HEXISTS', root .. 'flags', 'full') == 1
end

-- Used and allowed bytes by the server's word; 0 and 0 where it does not say (INFO is barred).
local function read_memory()
  local info = redis.pcall('INFO', 'memory')
  if type(info) ~= 'string' then
    return 0, 0
  end
  return tonumber(string.match(info, 'used_memory:(%d+)') or '0'), tonumber(string.match(info, 'maxmemory:(%d+)') or '0')
end

-- Is there no room for new calls with so many bytes of arguments, by a look at the server? `was_short`: what the flag says.
local function look_at_memory(bytes, was_short)
  local used, allowed = read_memory()
  redis.call('SET', root .. 'memory_looked_at', whole(now + (allowed > 0 and LOOK_MS or UNLIMITED_LOOK_MS)))
  if allowed == 0 then
    return was_short -- raised by a worker that is told more, or never
  end
  -- The arguments are in the server's memory already, as a command; the flag is about what is there without them.
  return mark_memory(used - bytes, allowed, STOP, RESUME) or used * 1000 / allowed >= STOP
end
