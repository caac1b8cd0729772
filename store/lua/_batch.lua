-- Prelude: the counters and the namespace's stream of events. A script that moves several calls writes both at its end: a
-- counter that several of them change takes one command, and their events take one entry of the stream.
-- uses: names
local EVENTS_KEPT = '100000' -- entries
local EVENTS_AN_ENTRY = 50
local batch

local function add_to(counter, by)
  if batch then
    batch.counters[counter] = (batch.counters[counter] or 0) + by
  else
    redis.call('HINCRBY', root .. 'counts', counter, by)
  end
end

local function write_events(words)
  redis.call('XADD', root .. 'events', 'MAXLEN', '~', EVENTS_KEPT, '*', unpack(words))
end

-- Append one event, as a line of JSON, about a call.
local function publish(call, line)
  if not batch then
    return write_events({ 'call', call, 'event', line })
  end
  local words, last = batch.events, #batch.events
  words[last + 1], words[last + 2], words[last + 3], words[last + 4] = 'call', call, 'event', line
  if last + 4 == 4 * EVENTS_AN_ENTRY then
    batch.events = {}
    write_events(words)
  end
end

-- Do this, and write what it counts and publishes together; also where it fails.
local function in_batch(work)
  batch = { counters = {}, events = {} }
  local is_done, answer = pcall(work)
  local words, counters = batch.events, batch.counters
  batch = nil
  for counter, by in pairs(counters) do
    if by ~= 0 then
      redis.call('HINCRBY', root .. 'counts', counter, by)
    end
  end
  if words[1] then
    write_events(words)
  end
  if not is_done then
    local why = type(answer) == 'table' and answer.err or answer
    error({ err = string.find(why, '^%u+ ') and why or 'ERR ' .. why }, 0) -- a text alone would lose its error code
  end
  return answer
end
