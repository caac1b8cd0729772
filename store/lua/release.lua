#!lua flags=allow-oom
-- release: give a claimed call back. Un-entered it may be held or queued at once; after an attempt that may run
-- again (retry_later) it is queued for later.
-- uses: ledger flow
-- KEYS[1] = root of the namespace
-- ARGV    = call key, fence, "release" | "retry_later", delay (held for approval: its lifetime) in ms, held reason or "",
--           error JSON or "", worker
-- RETURNS {"released", state} | {"lost", state or ""}
-- INVARIANT only the holder of the fence gives back; sent twice it answers the same.
local call, fence, op, reason = ARGV[1], ARGV[2], ARGV[3], ARGV[5]
local got = fields(call, 'state', 'fence', 'released', 'tool', 'attempt')
if got[3] == fence then
  return { 'released', got[1] }
elseif got[1] ~= 'running' or got[2] ~= fence then
  return { 'lost', got[1] or '' }
end
redis.call('HSET', record_of(call), 'released', fence)
if op == 'release' then
  redis.call('HINCRBY', record_of(call), 'attempt', -1) -- never entered: it does not count
end
if ARGV[6] ~= '' then
  redis.call('HSET', record_of(call), 'error', ARGV[6])
end
local to = reason ~= '' and 'held' or 'queued'
transition(call, 'running', to,
  { op = op, actor = ARGV[7], tool = got[4], fence = fence, attempt = got[5], reason = reason })
if to == 'queued' then
  enqueue(call, tonumber(ARGV[4]))
elseif reason == 'no_worker' then
  redis.call('SADD', root .. 'without:' .. got[4], call)
elseif reason == 'approval' then
  local lapse = whole(now + tonumber(ARGV[4]))
  redis.call('HSET', record_of(call), 'approval_until', lapse)
  redis.call('ZADD', root .. 'approvals', lapse, call)
  redis.call('HDEL', record_of(call), 'deadline_at') -- the queue's clock starts when a person lets it in
end
return { 'released', to }
