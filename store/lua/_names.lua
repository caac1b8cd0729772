-- Prelude: the names of keys, and Redis time. Every script starts with it.
-- Keys of records are found inside the scripts, so all are derived from KEYS[1], the namespace's root ("{toolonce}:"). Its
-- braces are a hash tag: all keys of a namespace, RQ's too, lie in one slot.
local root = KEYS[1]
local space = string.sub(root, 2, -3)
local rq = root .. 'rq:'
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
local now_text = string.format('%d', now)
local micros = tonumber(clock[1]) * 1000000 + tonumber(clock[2])

local OPEN = { held = true, queued = true, running = true, unknown = true }

local function whole(number)
  return string.format('%d', number)
end

local function record_of(call)
  return root .. 'call:' .. call
end

local function queue_key(queue)
  return rq .. 'queue:' .. space .. '.' .. queue
end

-- The name of its RQ job, and what handlers forward downstream: its key, and its fingerprint.
local function job_of(call, fingerprint)
  return call .. '-' .. (fingerprint or '')
end

local function fields(call, ...)
  return redis.call('HMGET', record_of(call), ...)
end
