-- admit: store the new calls of one turn, whole: record, RQ job, pointer, event and counters in one step.
-- uses: ledger memory queue answer fence (flow)
-- KEYS[1] = root of the namespace
-- ARGV    = highest fence that the harness has seen, request id, turn key, most calls a queue may hold (0: no limit),
--           version of the specs by which new calls were judged ("": any), inbox stream, inbox group, inbox entry,
--           answer stream (the inbox four: "" for none), most queued calls of a tenant (0: no limit), number of job fields,
--           the job hash as field, value, ...,
--           then per call: call key, state, held reason, approval lifetime in ms, number of fingerprints, fingerprints,
--           number of predecessors, their call keys, number of tools that it comes after, their names,
--           number of record fields, the record as field, value, ...
-- RETURNS {"full", "queue" | "tenant", name} | {"full", "memory"} | {"specs"} (others are published by now)
--         | {"ok", the highest fence, per call {"admitted" | "found" | "conflict", answer}}
-- INVARIANT a call that is stored already is never touched; sent twice under one request id it answers the same.
local request, turn_key, queue_limit = ARGV[2], ARGV[3], tonumber(ARGV[4])
local inbox, group, entry, answers = ARGV[6], ARGV[7], ARGV[8], ARGV[9]
local SLIPS_TTL = 86400
-- When this submission came, in microseconds: a turn that comes in several has its calls in the order of these.
local came_at = clock[1] .. string.format('%06d', tonumber(clock[2]))
local tenant_limit, queued_by = tonumber(ARGV[10]), nil
local at = 10
local function take()
  at = at + 1
  return ARGV[at]
end
local function take_list()
  local size = tonumber(take())
  at = at + size
  return at - size + 1, at
end
local job_from, job_to = take_list()

local function store_pointer(asked, status)
  redis.call('HSET', 'rq:job:' .. asked.ikey, 'origin', space .. '.' .. asked.queue, 'description', asked.tool,
    'status', status, unpack(ARGV, job_from, job_to))
end

-- The calls of this turn that are stored, by tool; read once, and only where a tool comes after another. A turn may come
-- in several submissions, one call in each.
local stored_by_tool
local function remember(call, tool)
  local listed = stored_by_tool[tool or ''] or {}
  listed[#listed + 1] = call
  stored_by_tool[tool or ''] = listed
end
local function stored_calls_of(tool)
  if not stored_by_tool then
    stored_by_tool = {}
    for _, call in ipairs(redis.call('HKEYS', root .. 'turn:' .. turn_key)) do
      remember(call, fields(call, 'tool')[1])
    end
  end
  return stored_by_tool[tool] or {}
end

-- The calls that must succeed before this one, each once.
local function find_ahead(spec)
  local ahead, listed = {}, {}
  local function add(call)
    if not listed[call] then
      listed[call], ahead[#ahead + 1] = true, call
    end
  end
  for i = spec.pre_from, spec.pre_to do
    add(ARGV[i])
  end
  for i = spec.after_from, spec.after_to do
    for _, call in ipairs(stored_calls_of(ARGV[i])) do
      add(call)
    end
  end
  return ahead
end

-- Whoever it must follow counts down `predecessors`; one that can no longer succeed refuses it at once.
-- Returns how many are still open, or nil and the state of one that cannot succeed.
local function follow(spec)
  local open = 0
  for _, ahead in ipairs(find_ahead(spec)) do
    local state = fields(ahead, 'state')[1]
    if state ~= 'succeeded' then
      if not state or not OPEN[state] or state == 'unknown' then
        return nil, state or 'absent'
      end
      redis.call('SADD', root .. 'followers:' .. ahead, spec.call)
      open = open + 1
    end
  end
  return open
end

-- Arguments that were of no use: the how many-eth turn in a row with such a call of this tool in this scope. The
-- model may correct once; several such calls in one turn count once, since it could not correct in between.
local function count_slip(asked)
  local slips = root .. 'slips:' .. asked.scope
  local number, turn = string.match(redis.call('HGET', slips, asked.tool) or '', '^(%d+) (.*)$')
  number = tonumber(number or '0') + (turn == turn_key and 0 or 1)
  redis.call('HSET', slips, asked.tool, number .. ' ' .. turn_key)
  redis.call('EXPIRE', slips, SLIPS_TTL)
  return number
end

-- Nothing new is taken in while memory is short or a queue is full; what is stored is answered.
local fence = highest_fence(tonumber(ARGV[1]))
local flags = redis.call('HMGET', root .. 'flags', 'full', 'went_back')
local was_short, has_lost_writes = flags[1], flags[2]
local function full_for(spec)
  local asked = spec.asked
  if spec.state == 'refused' then
    return nil
  elseif queue_limit > 0 and redis.call('LLEN', queue_key(asked.queue)) >= queue_limit then
    return { 'full', 'queue', asked.queue }
  elseif tenant_limit > 0 then
    queued_by = queued_by or tonumber(redis.call('HGET', root .. 'queued_by_tenant', asked.tenant) or '0')
    if queued_by >= tenant_limit then
      return { 'full', 'tenant', asked.tenant }
    end
  end
end

-- New calls are judged by the specs that are published now, in this very step.
local published
local function is_judged_by_others()
  published = published or redis.call('GET', root .. 'tools_version') or '0'
  return ARGV[5] ~= '' and ARGV[5] ~= published
end

local calls, seen, new_bytes = {}, {}, nil
while at < #ARGV do
  local spec = { call = take(), state = take(), reason = take(), approval = tonumber(take()) }
  spec.fp_from, spec.fp_to = take_list()
  spec.pre_from, spec.pre_to = take_list()
  spec.after_from, spec.after_to = take_list()
  spec.field_from, spec.field_to = take_list()
  spec.asked = {}
  for i = spec.field_from, spec.field_to, 2 do
    spec.asked[ARGV[i]] = ARGV[i + 1]
  end
  spec.is_new = not seen[spec.call] and redis.call('EXISTS', record_of(spec.call)) == 0
  seen[spec.call] = true
  if spec.is_new and is_judged_by_others() then
    return { 'specs' } -- before anything else is said: what it says is about other specs
  end
  local full = spec.is_new and full_for(spec)
  if full then
    return full
  elseif spec.is_new then
    new_bytes = (new_bytes or 0) + #(spec.asked.args or '')
  end
  calls[#calls + 1] = spec
end
if new_bytes and is_memory_short(new_bytes, was_short) then
  return { 'full', 'memory' }
end

-- The oldest equal call of the same scope that is still open, for tools that let a person decide whether it is a
-- repeat; under whatever key of the keyring it was stored.
local function find_twin(spec)
  for i = spec.fp_from, spec.fp_to do
    local twin = redis.call('ZRANGE', flow().twins_of(spec.asked.scope, ARGV[i]), 0, 0)[1]
    if twin then
      return twin
    end
  end
end

-- State and reason of a call that is not refused as it came. `more` is what else is written to its record.
local function place(spec, more)
  local call, asked, state, reason = spec.call, spec.asked, spec.state, spec.reason
  if asked.lanes then
    local seq = redis.call('INCR', root .. 'admissions')
    each(asked.lanes, function(lane)
      redis.call('ZADD', root .. 'lane:' .. lane, seq, call)
    end)
  end
  local open, why = follow(spec)
  if not open then
    local not_run = more.may_have_run and 'not run since the store has lost writes' or 'not run'
    more.error = cjson.encode({ code = 'predecessor', message = not_run .. ': the call it had to follow is ' .. why,
      details = { predecessor_state = why } })
    return 'refused', 'predecessor ' .. why
  end
  more.predecessors = open > 0 and open or nil
  more.duplicate_of = asked.hold_duplicates and find_twin(spec) or nil
  if state ~= 'queued' then
    return state, reason
  elseif more.duplicate_of then
    return 'held', 'duplicate'
  elseif open > 0 or (asked.lanes and not flow().is_next(call, asked.lanes)) then
    return 'held', 'order'
  end
  return state, reason
end

-- The record as it is written, in one step: as asked for, and what admission adds.
local function record(spec, more)
  local out = { 'admitted_by', request, 'admitted_at', whole(now), 'turn_key', turn_key,
    unpack(ARGV, spec.field_from, spec.field_to) }
  for name, value in pairs(more) do
    out[#out + 1], out[#out + 2] = name, value
  end
  return out
end

-- The queue deadline starts with the first wait for a worker: what `enqueue` does, for a call that has no record yet.
local function await_worker(call, asked, more)
  more.not_before, more.queued_at = whole(now), whole(now)
  if asked.deadline_ms then
    more.deadline_at = whole(now + tonumber(asked.deadline_ms))
    redis.call('ZADD', root .. 'deadlines', more.deadline_at, call)
  end
  line_up(call, asked.queue, asked.ikey)
end

-- A call refused from the start never has a pointer; the others have one from now on, waiting or in the queue.
local function settle_in(call, state, reason, spec)
  if state == 'held' then
    flow().wait_held(call, spec.asked.tool, reason, spec.approval)
  elseif state == 'refused' and spec.state ~= 'refused' then
    flow().arrive(call, state, spec.asked.tool, flow().know(call))
  elseif state == 'refused' then
    redis.call('PUBLISH', root .. 'wake:' .. turn_key, call)
  end
end

local queued_now = {}
local function admit(spec)
  local call, asked, state, reason, more = spec.call, spec.asked, spec.state, spec.reason, {}
  redis.call('HSET', root .. 'turn:' .. turn_key, call, came_at .. ' ' .. asked.position)
  if state ~= 'refused' then
    more.may_have_run = has_lost_writes and asked.effect ~= 'read' and 1 or nil
    state, reason = place(spec, more)
    store_pointer(asked, state == 'held' and 'deferred' or 'queued')
  end
  if reason == 'invalid_arguments' or reason == 'too_costly' then
    more.slip = count_slip(asked)
  end
  if state == 'queued' then
    await_worker(call, asked, more)
    queued_now[asked.tenant] = (queued_now[asked.tenant] or 0) + 1
  end
  move(call, false, state, { op = 'admit', actor = 'submit', tool = asked.tool, reason = reason }, record(spec, more))
  if asked.hold_duplicates and state ~= 'refused' then
    flow().join_twins(call)
  end
  settle_in(call, state, reason, spec)
  if stored_by_tool then
    remember(call, asked.tool)
  end
end

-- The error of a conflict, as answers.read_conflict makes it: what became of the first call. Its own error is taken over
-- as it is, since numbers would lose digits.
local function conflict(call, by_intent)
  local got = fields(call, 'tool', 'state', 'attempt', 'reason', 'error', 'may_have_run')
  local first = cjson.encode({ tool = got[1], state = got[2], attempt = tonumber(got[3]),
    reason = got[2] == 'held' and got[4] ~= '' and got[4] or nil, may_have_run = got[6] and true or nil })
  if got[2] ~= 'succeeded' and got[5] and got[5] ~= '' then
    first = string.sub(first, 1, -2) .. ',"error":' .. got[5] .. '}'
  end
  local named = by_intent and 'this intent key was used before' or 'this call id was used before in this turn'
  local message = named .. ' with another tool or other arguments; not run. The first call is ' .. got[2]
  return '{"code":"conflict","message":' .. cjson.encode(message) .. ',"details":{"named_by":"'
    .. (by_intent and 'intent' or 'turn') .. '","first":' .. first .. '}}'
end

-- An inbox entry hears of each call once it is at rest; a conflict, and what is at rest already, at once. It hears of
-- them in its own places and under its own ids, which an intent key may have found under others.
local function answer_on_stream(spec, verdict)
  local call, asked = spec.call, spec.asked
  local position, id = asked.position, asked.call_id or ''
  if verdict == 'conflict' then
    redis.call('XADD', answers, '*', 'call', call, 'position', position, 'id', id, 'name', asked.tool,
      'state', 'conflict', 'result', '', 'error', conflict(call, asked.by_intent), 'marks', '')
    return
  end
  local got, line = fields(call, 'state', 'answers'), cjson.encode({ answers, position, id })
  if OPEN[got[1]] then
    redis.call('HSET', record_of(call), 'answers', got[2] and got[2] .. '\n' .. line or line)
  end
  if not OPEN[got[1]] or got[1] == 'unknown' then
    flow().tell_harness(call, line)
  end
end

-- "admitted" only where this submission stored it: under this request id, and with these arguments.
local function judge(spec)
  if spec.is_new then
    return 'admitted'
  end
  local stored = redis.call('HMGET', record_of(spec.call), 'fp', 'admitted_by')
  for i = spec.fp_from, spec.fp_to do
    if ARGV[i] == stored[1] then
      return stored[2] == request and 'admitted' or 'found'
    end
  end
  return 'conflict'
end

local acknowledged = inbox ~= '' and redis.call('XACK', inbox, group, entry) == 1
if acknowledged and answers ~= '' then
  redis.call('XADD', answers, '*', 'state', 'admitted', 'calls', #calls)
  flow().keep_answers(answers)
end
local out = { 'ok', fence }
for _, spec in ipairs(calls) do
  if spec.is_new then
    admit(spec)
  end
  local verdict = judge(spec)
  if answers ~= '' and acknowledged then -- else this has come before, and its reply was lost
    answer_on_stream(spec, verdict)
  end
  out[#out + 1] = { verdict, answer(spec.call) }
end
for tenant, queued in pairs(queued_now) do
  count_queued(tenant, queued)
end
if acknowledged then
  redis.call('XDEL', inbox, entry)
end
return out
