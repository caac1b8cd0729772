-- admit: store the new calls of one turn, whole: record, RQ job, pointer, event and counters in one step.
-- uses: ledger queue flow answer
-- KEYS[1] = root of the namespace
-- ARGV    = request id, turn key, most calls a queue may hold (0: no limit), inbox stream, inbox group, inbox entry,
--           answer stream (the inbox four: "" for none), number of job fields, the job hash as field, value, ...,
--           then per call: call key, state, held reason, approval lifetime in ms, number of fingerprints, fingerprints,
--           number of predecessors, their call keys, number of record fields, the record as field, value, ...
-- RETURNS {"full", "queue", name} | {"full", "memory"} | {"ok", per call {"admitted" | "found" | "conflict", answer}}
-- INVARIANT a call that is stored already is never touched; sent twice under one request id it answers the same.
local request, turn_key, queue_limit = ARGV[1], ARGV[2], tonumber(ARGV[3])
local answers = ARGV[7]
local SLIPS_TTL = 86400
local CONFLICT = cjson.encode({ code = 'conflict',
  message = 'this call id was used in this turn with another tool or other arguments; not run' })
local at = 7
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

local function store_pointer(job, queue, tool)
  redis.call('HSET', 'rq:job:' .. job, 'origin', space .. '.' .. queue, 'description', tool,
    unpack(ARGV, job_from, job_to))
end

-- Whoever it must follow counts down `predecessors`; one that can no longer succeed refuses it at once.
local function follow(call, from, to)
  local open = 0
  for i = from, to do
    local state = fields(ARGV[i], 'state')[1]
    if state ~= 'succeeded' then
      if not state or not OPEN[state] or state == 'unknown' then
        return 'refused', state or 'absent'
      end
      redis.call('SADD', root .. 'followers:' .. ARGV[i], call)
      open = open + 1
    end
  end
  if open > 0 then
    redis.call('HSET', record_of(call), 'predecessors', open)
  end
  return open > 0 and 'held' or 'queued'
end

-- A call refused from the start never has a pointer; the others have one from now on, waiting or in the queue.
local function settle_in(call, state)
  if state == 'held' then
    redis.call('HSET', 'rq:job:' .. fields(call, 'ikey')[1], 'status', 'deferred')
  elseif state == 'queued' then
    enqueue(call, 0)
  elseif redis.call('EXISTS', 'rq:job:' .. fields(call, 'ikey')[1]) == 1 then
    arrive(call, state, fields(call, 'tool')[1], know(call))
  else
    redis.call('PUBLISH', root .. 'wake:' .. turn_key, call)
  end
end

-- Arguments that were of no use: the how many-eth turn in a row with such a call of this tool in this scope. The
-- model may correct once; several such calls in one turn count once, since it could not correct in between.
local function count_slip(call)
  local got = fields(call, 'scope', 'tool')
  local slips = root .. 'slips:' .. (got[1] or '')
  local number, turn = string.match(redis.call('HGET', slips, got[2]) or '', '^(%d+) (.*)$')
  number = tonumber(number or '0') + (turn == turn_key and 0 or 1)
  redis.call('HSET', slips, got[2], number .. ' ' .. turn_key)
  redis.call('EXPIRE', slips, SLIPS_TTL)
  redis.call('HSET', record_of(call), 'slip', number)
end

-- Nothing new is taken in while memory is short (watermark.lua) or a queue is full; what is stored is answered.
local memory_is_short = redis.call('HEXISTS', root .. 'flags', 'full') == 1
local function full_for(spec)
  if redis.call('EXISTS', record_of(spec.call)) == 1 then
    return nil
  elseif memory_is_short then
    return { 'full', 'memory' }
  elseif queue_limit == 0 or spec.state == 'refused' then
    return nil
  end
  for i = spec.field_from, spec.field_to, 2 do
    if ARGV[i] == 'queue' and redis.call('LLEN', queue_key(ARGV[i + 1])) >= queue_limit then
      return { 'full', 'queue', ARGV[i + 1] }
    end
  end
end

local calls = {}
while at < #ARGV do
  local spec = { call = take(), state = take(), reason = take(), approval = tonumber(take()) }
  spec.fp_from, spec.fp_to = take_list()
  spec.pre_from, spec.pre_to = take_list()
  spec.field_from, spec.field_to = take_list()
  local full = full_for(spec)
  if full then
    return full
  end
  calls[#calls + 1] = spec
end

-- The oldest equal call of the same scope that is still open, for tools that let a person decide whether it is a
-- repeat; under whatever key of the keyring it was stored.
local function find_twin(spec)
  local got = fields(spec.call, 'hold_duplicates', 'scope')
  for i = spec.fp_from, got[1] and spec.fp_to or 0 do
    local twin = redis.call('ZRANGE', twins_of(got[2], ARGV[i]), 0, 0)[1]
    if twin then
      return twin
    end
  end
end

local function admit(spec)
  local call = spec.call
  redis.call('HSET', record_of(call), 'admitted_by', request, 'admitted_at', whole(now), 'turn_key', turn_key,
    unpack(ARGV, spec.field_from, spec.field_to))
  local got = fields(call, 'tool', 'queue', 'ikey', 'lanes', 'position')
  redis.call('HSET', root .. 'turn:' .. turn_key, call, got[5])
  local state, reason = spec.state, spec.reason
  if state ~= 'refused' then
    store_pointer(got[3], got[2], got[1])
    local seq = redis.call('INCR', root .. 'admissions')
    each(got[4], function(lane)
      redis.call('ZADD', root .. 'lane:' .. lane, seq, call)
    end)
    local following, why = follow(call, spec.pre_from, spec.pre_to)
    if following == 'refused' then
      state, reason = 'refused', 'predecessor ' .. why
      redis.call('HSET', record_of(call), 'error', cjson.encode({ code = 'predecessor',
        message = 'not run: the call it had to follow is ' .. why, details = { predecessor_state = why } }))
    else
      local twin = find_twin(spec)
      join_twins(call)
      if twin then
        redis.call('HSET', record_of(call), 'duplicate_of', twin)
      end
      if state == 'queued' and twin then
        state, reason = 'held', 'duplicate'
      elseif state == 'queued' and not (following == 'queued' and is_next(call, got[4], 0)) then
        state, reason = 'held', 'order'
      end
    end
  end
  if reason == 'invalid_arguments' then
    count_slip(call)
  end
  move(call, false, state, { op = 'admit', actor = 'submit', tool = got[1], reason = reason })
  if state == 'held' then
    wait_held(call, got[1], reason, spec.approval)
  end
  settle_in(call, state)
end

-- An inbox entry hears of each call once it is at rest; a conflict, and what is at rest already, at once. It hears of
-- them in its own places and under its own ids, which an intent key may have found under others.
local function answer_on_stream(spec, verdict)
  local call, asked = spec.call, {}
  for i = spec.field_from, spec.field_to, 2 do
    asked[ARGV[i]] = ARGV[i + 1]
  end
  local place, id = asked.position, asked.call_id or ''
  if verdict == 'conflict' then
    redis.call('XADD', answers, '*', 'call', call, 'position', place, 'id', id, 'name', asked.tool,
      'state', 'conflict', 'result', '', 'error', CONFLICT, 'marks', '')
    return
  end
  local got, line = fields(call, 'state', 'answers'), cjson.encode({ answers, place, id })
  if OPEN[got[1]] then
    redis.call('HSET', record_of(call), 'answers', got[2] and got[2] .. '\n' .. line or line)
  end
  if not OPEN[got[1]] or got[1] == 'unknown' then
    tell_harness(call, line)
  end
end

-- "admitted" only where this submission stored it: under this request id, and with these arguments.
local function judge(spec, is_new)
  if is_new then
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

local acknowledged = ARGV[4] ~= '' and redis.call('XACK', ARGV[4], ARGV[5], ARGV[6]) == 1
if acknowledged and answers ~= '' then
  redis.call('XADD', answers, '*', 'state', 'admitted', 'calls', #calls)
  redis.call('EXPIRE', answers, ANSWERS_TTL)
end
local out = { 'ok' }
for _, spec in ipairs(calls) do
  local is_new = redis.call('EXISTS', record_of(spec.call)) == 0
  if is_new then
    admit(spec)
  end
  local verdict = judge(spec, is_new)
  if answers ~= '' and acknowledged then -- else this has come before, and its reply was lost
    answer_on_stream(spec, verdict)
  end
  out[#out + 1] = { verdict, answer(spec.call) }
end
if acknowledged then
  redis.call('XDEL', ARGV[4], ARGV[6])
end
return out
