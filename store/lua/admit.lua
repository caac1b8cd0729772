-- admit: store the new calls of one turn, whole: record, RQ job, pointer, event and counters in one step.
-- uses: ledger leaving memory_short record_fields fence full usual_placement reply_ids (placement)
-- KEYS[1] = root of the namespace
-- ARGV    = seen_fence (the highest that the harness has seen), request_id, turn_key, queue_limit (most calls a queue
--           may hold, 0: no limit), specs_version (by which new calls were validated, "": any), inbox (stream, "" for
--           none, as the next three), group, entry, answers (stream), tenant_queue_limit (most queued calls of a
--           tenant, 0: no limit), #job, job[] (the job hash as field, value, ...), #shared, shared[] (what all these
--           records have in common, as field, value, ...), calls[call, state, reason (why held or refused), approval_ms
--           (its lifetime), #fingerprints, fingerprints[], #unique_keys, unique_keys[] (the newest key's first),
--           #predecessors, predecessors[] (call keys), #after, after[] (tools that it comes after), #record, record[]
--           (the rest of the record)]
-- RETURNS {"full", "queue" | "tenant", name, limit, 1 where it is by people} | {"full", "memory"}
--         | {"specs"} (others are published by now)
--         | {"ok", the highest fence, per call {"admitted" | "found" | "conflict", answer, reply id}}; no answer where the
--         call is queued and nothing else; the reply id, "" for none, only then and where an intent key has found a call of
--         another turn: else it is part of the answer
-- INVARIANT a call that is stored already is never touched; sent twice under one request id it answers the same.

-- Nothing new is taken in while memory is short or a queue is full; what is stored is answered.
local fence = highest_fence(tonumber(ARGV[1]))
local flags = redis.call('HMGET', root .. 'flags', 'full', 'went_back', 'rates_wait', 'queue_limits')
local was_short, has_lost_writes, rates_wait = flags[1], flags[2], flags[3]
has_queue_limits = flags[4]
-- New calls are validated by the specs that are published now, in this very step.
local published
local function is_judged_by_others()
  published = published or redis.call('GET', root .. 'tools_version') or '0'
  return ARGV[5] ~= '' and ARGV[5] ~= published
end

local calls, seen, with_id, new_bytes, looks_back = {}, {}, {}, nil, false
while read_to < #ARGV do
  local spec = read_call()
  spec.is_new = not seen[spec.call] and redis.call('EXISTS', record_of(spec.call)) == 0
  seen[spec.call] = true
  looks_back = looks_back or spec.looks_back
  if spec.is_new and is_judged_by_others() then
    return { 'specs' } -- before anything else is said: what it says is about other specs
  end
  local full = spec.is_new and full_for(spec)
  if full then
    return full
  elseif spec.is_new then
    new_bytes = (new_bytes or 0) + #(spec.asked.args or '')
  elseif spec.asked.by_intent then
    spec.is_of_another_turn = fields(spec.call, 'turn_key')[1] ~= turn_key
  end
  if (spec.is_new or spec.is_of_another_turn) and (spec.asked.call_id or '') ~= '' then
    with_id[#with_id + 1] = spec
  end
  calls[#calls + 1] = spec
end
if new_bytes and is_memory_short(new_bytes, was_short) then
  return { 'full', 'memory' }
end

if with_id[1] then
  choose_reply_ids(with_id)
end

local queued_now = {}
local function await_tenant(tenant)
  queued_now[tenant] = (queued_now[tenant] or 0) + 1
end

-- Whether it is queued and nothing else, as most calls are.
local function is_usual(spec)
  return spec.state == 'queued'
    and not (spec.has_relations or spec.asked.lanes or looks_back or has_lost_writes or rates_wait)
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
  redis.call('XADD', answers, '*', 'state', 'admitted', 'calls', #calls, 'reply_ids', placement().reply_ids_of(calls))
  placement().keep_answers(answers)
end
local out = { 'ok', fence }
local function admit_all()
  for _, spec in ipairs(calls) do
    local is_queued = spec.is_new and is_usual(spec)
    local state = is_queued and 'queued'
    if is_queued then
      admit_usual(spec)
    elseif spec.is_new then
      write_places() -- those before it come first
      state = placement().admit(spec, { has_lost_writes = has_lost_writes, rates_wait = rates_wait })
    end
    if state == 'queued' then
      await_tenant(spec.asked.tenant)
    end
    local verdict = judge(spec)
    if answers ~= '' and acknowledged then -- else this has come before, and its reply was lost
      placement().answer_on_stream(spec, verdict)
    end
    local chosen = spec.is_of_another_turn and (spec.reply_id or '') or nil
    out[#out + 1] = is_queued and { verdict, false, spec.reply_id or '' } or { verdict, answer(spec.call), chosen }
  end
  write_places()
end
in_batch(admit_all)
for tenant, queued in pairs(queued_now) do
  count_queued(tenant, queued)
end
if acknowledged then
  redis.call('XDEL', inbox, entry)
end
return out
