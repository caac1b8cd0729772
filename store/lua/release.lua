#!lua flags=allow-oom
-- release: give a claimed call back. Un-entered it may be held, queued at once, or queued until enough replicas answer;
-- after an attempt that may run again (retry_later) it is queued for later. Where a stop was asked for, it is cancelled
-- instead of queued.
-- uses: ledger queue flow fence
-- KEYS[1] = root of the namespace
-- ARGV    = call, fence, token (of the delivery), operation ("release" | "retry_later"), wait_ms (delay; held for
--           approval: its lifetime), held (reason, "replicas" or ""), error (JSON or ""), worker, raised (exception,
--           JSON or ""), counts (0: nothing had started, the attempt does not count)
-- RETURNS {"released", state} | {"lost", state or ""}
-- INVARIANT only the holder of the fence gives back; sent twice it answers the same.
local call, fence, op, reason = ARGV[1], ARGV[2], ARGV[4], ARGV[6]
local got = fields(call, 'state', 'fence', 'tool', 'attempt', 'token')
local before = given_up(call, fence)
if before then
  return { 'released', before }
elseif got[1] ~= 'running' or got[2] ~= fence or got[5] ~= ARGV[3] then
  if reason ~= REPLICAS then -- else a failover may have forgotten the claim, and that is not proof of anything
    compare_attempt(call, fence, ARGV[3])
  end
  return { 'lost', got[1] or '' }
end
write_history_out(call) -- with the number that this attempt has had
if op == 'release' then
  redis.call('HINCRBY', record_of(call), 'attempt', -1) -- never entered: it does not count
  rates().give_start_back(got[3])
end
if ARGV[10] == '0' then
  redis.call('HSETNX', record_of(call), 'attempt_limit', fields(call, 'max_attempts')[1])
  redis.call('HINCRBY', record_of(call), 'attempt_limit', 1) -- attempts keep their numbers, so the limit moves
  redis.call('HINCRBY', record_of(call), 'not_started', 1)
end
if ARGV[7] ~= '' then
  redis.call('HSET', record_of(call), 'error', ARGV[7])
end
local event = { op = op, actor = ARGV[8], tool = got[3], fence = fence, attempt = got[4], reason = reason,
  exception = ARGV[9] ~= '' and cjson.decode(ARGV[9]) or nil }
if reason == '' or reason == REPLICAS then
  local became = queue_again(call, tonumber(ARGV[5]), event, reason == REPLICAS)
  if ARGV[10] == '0' then
    fold(call, 2) -- its claim and its end
  end
  return { 'released', give_up(call, fence, became) }
end
transition(call, 'running', 'held', event)
wait_held(call, got[3], reason, tonumber(ARGV[5]))
redis.call('PUBLISH', root .. 'wake:' .. (fields(call, 'turn_key')[1] or ''), call) -- a person may have to be asked
return { 'released', give_up(call, fence, 'held') }
