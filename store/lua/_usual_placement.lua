-- Prelude: new calls that are queued and nothing else. What names them one by one in the same key is written for all of
-- them at once: a turn of ten costs little more commands there than one call does.
-- uses: new_record
local MOST_AT_ONCE = 500 -- Lua hands a command a few thousand arguments at most
local SHORT = 64 -- bytes of arguments: a record with longer ones may have another form, which its copies would keep
local jobs_made, events, deadlines, model = {}, {}, {}, nil
local usual = { turn = {}, moments = {}, deadlines = {}, jobs = {}, tools = {} }

-- Write the places of the calls that were admitted so far, in their order.
local function write_places()
  local count_of = #usual.moments / 2
  if count_of == 0 then
    return
  end
  redis.call('HSET', root .. 'turn:' .. turn_key, unpack(usual.turn))
  redis.call('ZADD', root .. 'in:queued', unpack(usual.moments))
  if usual.deadlines[1] then
    redis.call('ZADD', root .. 'deadlines', unpack(usual.deadlines))
  end
  for queue, jobs in pairs(usual.jobs) do
    local last, pushed = redis.call('INCRBY', root .. 'pushes', #jobs), {}
    for i, job in ipairs(jobs) do
      pushed[2 * i - 1], pushed[2 * i] = whole(last - #jobs + i), string.sub(job, 1, 32)
    end
    redis.call('ZADD', root .. 'pushed:' .. queue, unpack(pushed))
    redis.call('SADD', rq .. 'queues', queue_key(queue))
    redis.call('RPUSH', queue_key(queue), unpack(jobs))
  end
  for tool, by in pairs(usual.tools) do
    count(tool, 'queued', by)
  end
  add_to('admitted', count_of)
  usual = { turn = {}, moments = {}, deadlines = {}, jobs = {}, tools = {} }
  model = nil -- what comes between may change its record
end

-- The jobs of calls of one tool are equal: each further one is a copy.
local function store_usual_pointer(call, asked, job)
  local made = jobs_made[asked.tool]
  if made and made.queue == asked.queue then
    redis.call('COPY', made.key, rq .. 'job:' .. job, 'REPLACE')
  else
    store_pointer(call, asked, 'queued')
    jobs_made[asked.tool] = { queue = asked.queue, key = rq .. 'job:' .. job }
  end
end

-- Whether the record differs from the model's in nothing but the fields that come with each call.
local function is_like_model(spec, deadline_at)
  if not model or model.deadline_at ~= deadline_at or spec.reply_id or model.field_to - model.field_from
      ~= spec.field_to - spec.field_from then
    return false
  end
  for i = 0, spec.field_to - spec.field_from, 2 do
    if ARGV[spec.field_from + i] ~= ARGV[model.field_from + i] then
      return false
    end
  end
  return true
end

-- A record that is like an earlier one begins as its copy: writing a field into a record costs more. Where an inbox asks,
-- the earlier one has been told already where its answer goes.
local function write_usual_record(call, spec, deadline_at)
  if is_like_model(spec, deadline_at) then
    redis.call('COPY', record_of(model.call), record_of(call))
    redis.call('HSET', record_of(call), unpack(ARGV, spec.field_from, spec.field_to))
    return
  end
  write_state(call, 'queued', unpack(record(spec, { deadline_at = deadline_at, reply_id = spec.reply_id })))
  if #spec.asked.args <= SHORT and not spec.reply_id and answers == '' then
    model = { call = call, deadline_at = deadline_at, field_from = spec.field_from, field_to = spec.field_to }
  end
end

local function event_of(tool)
  events[tool] = events[tool] or '{"op":"admit","actor":"submit","at":' .. now_text .. ',"to":"queued","tool":'
    .. cjson.encode(tool) .. '}'
  return events[tool]
end

local function deadline_of(span)
  deadlines[span] = deadlines[span] or whole(now + span)
  return deadlines[span]
end

local function admit_usual(spec)
  local call, asked = spec.call, spec.asked
  local queue, tool, job = asked.queue, asked.tool, job_of(call, asked.fp)
  local deadline_at = asked.deadline_ms and deadline_of(asked.deadline_ms)
  write_usual_record(call, spec, deadline_at)
  store_usual_pointer(call, asked, job)
  publish(call, event_of(tool))

  local turn, moments, last = usual.turn, usual.moments, #usual.moments
  turn[last + 1], turn[last + 2] = call, came_at .. ' ' .. asked.position
  moments[last + 1], moments[last + 2] = moment(), call
  if deadline_at then
    local due = usual.deadlines
    due[#due + 1], due[#due + 2] = deadline_at, call
  end
  usual.jobs[queue] = usual.jobs[queue] or {}
  table.insert(usual.jobs[queue], job)
  usual.tools[tool] = (usual.tools[tool] or 0) + 1
  if last + 2 == 2 * MOST_AT_ONCE then
    write_places()
  end
end
