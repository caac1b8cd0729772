#!lua flags=allow-oom
-- forget: retention. First the body of a settled call goes and a tombstone stays, later the tombstone goes too.
-- uses: ledger forget
-- KEYS[1] = root of the namespace
-- ARGV    = state, body_ms (kept for), tombstone_ms (kept for), most (calls in this step)
-- RETURNS {bodies forgotten, tombstones removed}
-- INVARIANT only settled calls; the counters keep counting them, so admitted = settled + open stays true.
local state, most = ARGV[1], tonumber(ARGV[4])
if OPEN[state] then
  return redis.error_reply('ERR ' .. state .. ' calls are never forgotten')
end
local index, tombs = root .. 'in:' .. state, root .. 'tombs:' .. state
local bodies, gone, highest = 0, 0, -1

-- A unique key lasts as long as its tool says, and until the calls that follow this one have their answers; then it goes
-- with the tombstone.
local function keeps_unique_key(call, key, unique_for)
  local names = root .. 'unique:' .. key
  if redis.call('ZSCORE', names, call) == '0' then
    local lasts_until = tonumber(fields(call, 'changed_at')[1]) + tonumber(unique_for or '0')
    if lasts_until > now then
      redis.call('ZADD', tombs, whole(lasts_until - tonumber(ARGV[3])), call)
    end
    if lasts_until > now or redis.call('ZCOUNT', names, 1, '9007199254740992') > 0 then
      return true
    end
  end
  redis.call('ZREM', names, call)
  return false
end

local function remove(call)
  local got = fields(call, 'turn_key', 'fence', 'scope', 'call_id', 'unique', 'unique_for')
  if got[5] and keeps_unique_key(call, got[5], got[6]) then
    return 0
  end
  highest = math.max(highest, tonumber(got[2] or '0'))
  redis.call('HDEL', root .. 'turn:' .. got[1], call)
  redis.call('DEL', record_of(call), root .. 'history:' .. call, root .. 'evidence:' .. call)
  redis.call('ZREM', tombs, call)
  local in_use = root .. 'reply_ids:' .. (got[3] or '') -- of a scope, until its last record with an id is gone
  local had_id = (got[4] or '') ~= ''
  if redis.call('HINCRBY', in_use, '', had_id and -1 or 0) <= 0 then
    redis.call('DEL', in_use)
  end
  return 1
end

for _, call in ipairs(redis.call('ZRANGEBYSCORE', index, '-inf', '(' .. whole(now + 1 - tonumber(ARGV[2])), 'LIMIT', 0, most)) do
  forget_body(call, state)
  bodies = bodies + 1
end
for _, call in ipairs(redis.call('ZRANGEBYSCORE', tombs, '-inf', '(' .. whole(now + 1 - tonumber(ARGV[3])), 'LIMIT', 0, most)) do
  gone = gone + remove(call)
end
if highest > tonumber(redis.call('HGET', root .. 'marks', 'removed_fence') or '-1') then
  redis.call('HSET', root .. 'marks', 'removed_fence', whole(highest)) -- whose record is gone was removed, not lost
end
return { bodies, gone }
