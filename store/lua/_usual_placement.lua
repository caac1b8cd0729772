-- Prelude: new calls that are queued and nothing else. What names them one by one in the same key is written for all of
-- them at once: a turn of ten costs little more commands there than one call does.
-- uses: placement
local MOST_AT_ONCE = 500 -- Lua hands a command a few thousand arguments at most
local usual, made, events = {}, {}, {}

local function collect(kind, key, ...)
  local lists = usual[kind] or {}
  usual[kind] = lists
  local list = lists[key] or {}
  lists[key] = list
  for i = 1, select('#', ...) do
    list[#list + 1] = (select(i, ...))
  end
end

local function write_each(kind, write)
  for key, list in pairs(usual[kind] or {}) do
    write(key, list)
  end
end

-- Write the places of the calls that were admitted so far, in their order.
local function write_places()
  if not next(usual) then
    return
  end
  redis.call('HSET', root .. 'turn:' .. turn_key, unpack(usual.turn[turn_key]))
  redis.call('ZADD', root .. 'in:queued', unpack(usual.moments.queued))
  write_each('deadlines', function(_, list)
    redis.call('ZADD', root .. 'deadlines', unpack(list))
  end)
  write_each('jobs', function(queue, jobs)
    local last, pushed = redis.call('INCRBY', root .. 'pushes', #jobs), {}
    for i, job in ipairs(jobs) do
      pushed[2 * i - 1], pushed[2 * i] = whole(last - #jobs + i), string.sub(job, 1, 32)
    end
    redis.call('ZADD', root .. 'pushed:' .. queue, unpack(pushed))
    redis.call('SADD', rq .. 'queues', queue_key(queue))
    redis.call('RPUSH', queue_key(queue), unpack(jobs))
  end)
  usual = {}
end

-- The jobs of calls of one tool are equal: each further one is a copy.
local function store_usual_pointer(call, asked)
  local job, like = job_of(call, asked.fp), asked.queue .. '\n' .. asked.tool
  if made[like] then
    redis.call('COPY', rq .. 'job:' .. made[like], rq .. 'job:' .. job)
  else
    store_pointer(call, asked, 'queued')
    made[like] = job
  end
end

local function event_of(tool)
  events[tool] = events[tool] or '{"op":"admit","actor":"submit","at":' .. now_text .. ',"to":"queued","tool":'
    .. cjson.encode(tool) .. '}'
  return events[tool]
end

local function admit_usual(spec)
  local call, asked, more = spec.call, spec.asked, { reply_id = spec.reply_id }
  if asked.deadline_ms then
    more.deadline_at = whole(now + asked.deadline_ms)
    collect('deadlines', '', more.deadline_at, call)
  end
  write_state(call, 'queued', unpack(record(spec, more)))
  store_usual_pointer(call, asked)
  publish(call, event_of(asked.tool))
  collect('turn', turn_key, call, came_at .. ' ' .. asked.position)
  collect('moments', 'queued', moment(), call)
  collect('jobs', asked.queue, job_of(call, asked.fp))
  count(asked.tool, 'queued', 1)
  add_to('admitted', 1)
  if #usual.moments.queued >= 2 * MOST_AT_ONCE then
    write_places()
  end
end
