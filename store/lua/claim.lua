-- claim: take the right to run one call, for a lease, under a new fence; or learn why not.
-- uses: ledger queue flow run fence
-- KEYS[1] = root of the namespace
-- ARGV    = call key, RQ job id, queue it came from, delivery token, worker, lease in ms, highest fence seen before
-- RETURNS {"run", fence, fields by execution.RUN_FIELDS} | {"settled", state} | {"busy", ms left of the lease}
--         | {"held", reason} | {"parked", limit or "later"} | {"unknown"} | {"gone"}
-- INVARIANT a call is running under one fence only; a delivery that comes again under its token gets its own claim
--           again, and nothing is counted twice.
local call, job, token, worker = ARGV[1], ARGV[2], ARGV[4], ARGV[5]
local lease, seen = tonumber(ARGV[6]), tonumber(ARGV[7])
redis.call('LREM', queue_key(ARGV[3]) .. ':intermediate', 1, job)

local rec = record_of(call)
local got = fields(call, 'state', 'ikey', 'token', 'tool', 'effect', 'not_before', 'deadline_at', 'lanes',
  'predecessors', 'tenant', 'queue', 'reason', 'fence', 'attempt')
local state, tool, queue = got[1], got[4], got[11]
if not state or got[2] ~= job then
  return { 'gone' }
elseif state == 'running' then
  if got[3] == token then
    return { 'run', tonumber(got[13]), run_fields(call) }
  end
  return { 'busy', math.max(0, tonumber(redis.call('ZSCORE', root .. 'leases', call) or now) - now) }
elseif state == 'unknown' then
  return { 'unknown' }
elseif state == 'held' then
  return { 'held', got[12] }
elseif state ~= 'queued' then
  return { 'settled', state }
end

local event = { op = 'claim', actor = worker, tool = tool, token = token }
if (tonumber(got[7] or '') or now + 1) <= now then
  event.op = 'expire'
  expire_queued(call, event)
  return { 'settled', 'expired' }
elseif tonumber(got[6] or '0') > now then
  return { 'parked', 'later' } -- a doubled pointer: the call itself waits among the delayed
elseif not is_next(call, got[8], got[9]) then
  event.reason = 'order'
  transition(call, 'queued', 'held', event)
  return { 'held', 'order' }
end

highest_fence(seen)
if got[5] == 'mutating' and redis.call('HEXISTS', root .. 'flags', 'went_back') == 1 then
  event.reason = 'store_went_back'
  transition(call, 'queued', 'held', event)
  wait_held(call, tool, event.reason)
  return { 'held', 'store_went_back' }
end

local taken = {}
for _, limit in ipairs(limits_of(tool, got[10])) do
  local room = room_in(limit)
  if room < 1 then
    local woken = fields(call, 'woken')[1]
    park(call, queue, limit)
    if woken and woken ~= limit then
      wake(woken, 1) -- that slot is still free: the next in line gets its chance
    end
    return { 'parked', limit }
  elseif room < math.huge then
    taken[#taken + 1] = limit
  end
end

local fence = redis.call('INCR', root .. 'fence')
local attempt = tonumber(got[14]) + 1
event.fence, event.attempt = fence, attempt
transition(call, 'queued', 'running', event)
for _, limit in ipairs(taken) do
  redis.call('SADD', root .. 'slots:' .. limit, call)
end
redis.call('HSET', rec, 'fence', fence, 'token', token, 'worker', worker, 'claimed_at', whole(now), 'begun', 0,
  'attempt', attempt)
redis.call('ZADD', root .. 'leases', whole(now + lease), call)
redis.call('ZADD', 'rq:wip:' .. space .. '.' .. queue, '+inf', job .. ':' .. token)
redis.call('HSET', 'rq:job:' .. job, 'status', 'started', 'worker_name', worker)
return { 'run', fence, run_fields(call) }
