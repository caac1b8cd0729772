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
for _, call in ipairs(redis.call('ZRANGEBYSCORE', index, '-inf', '(' .. whole(now + 1 - tonumber(ARGV[2])), 'LIMIT', 0, most)) do
  forget_body(call, state)
  bodies = bodies + 1
end
for _, call in ipairs(redis.call('ZRANGEBYSCORE', tombs, '-inf', '(' .. whole(now + 1 - tonumber(ARGV[3])), 'LIMIT', 0, most)) do
  local got = fields(call, 'turn_key', 'fence', 'scope', 'call_id')
  highest = math.max(highest, tonumber(got[2] or '0'))
  redis.call('HDEL', root .. 'turn:' .. got[1], call)
  redis.call('DEL', record_of(call), root .. 'history:' .. call, root .. 'evidence:' .. call)
  redis.call('ZREM', tombs, call)
  local in_use = root .. 'reply_ids:' .. (got[3] or '') -- of a scope, until its last record with an id is gone
  local had_id = (got[4] or '') ~= ''
  if redis.call('HINCRBY', in_use, '', had_id and -1 or 0) <= 0 then
    redis.call('DEL', in_use)
  end
  gone = gone + 1
end
if highest > tonumber(redis.call('HGET', root .. 'marks', 'removed_fence') or '-1') then
  redis.call('HSET', root .. 'marks', 'removed_fence', whole(highest)) -- whose record is gone was removed, not lost
end
return { bodies, gone }
