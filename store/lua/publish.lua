-- publish: a worker says which tools it serves and how: spec, limits; calls that waited for such a worker go on.
-- uses: ledger flow
-- KEYS[1] = root of the namespace
-- ARGV    = per tool: name, version, spec JSON, most calls at once over all workers ("" for no limit)
-- RETURNS {version number of the published specs, number of calls that were freed}
-- INVARIANT publishing the same specs again changes no version number.
local changed, freed = false, 0
for i = 1, #ARGV, 4 do
  local tool, field, spec, cap = ARGV[i], ARGV[i] .. '\n' .. ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  if redis.call('HGET', root .. 'tools', field) ~= spec then
    changed = true
    redis.call('HSET', root .. 'tools', field, spec)
  end
  redis.call('HSET', root .. 'newest', tool, ARGV[i + 1])
  if cap == '' then
    redis.call('HDEL', root .. 'limits', 'tool:' .. tool)
  else
    redis.call('HSET', root .. 'limits', 'tool:' .. tool, cap)
  end
  local limit = 'tool:' .. tool
  local room = (tonumber(cap) or math.huge) - redis.call('SCARD', root .. 'slots:' .. limit)
  for _ = 1, math.min(room, redis.call('ZCARD', root .. 'waiting:' .. limit)) do
    wake(limit)
  end
  for _, call in ipairs(redis.call('SRANDMEMBER', root .. 'without:' .. tool, 1000)) do
    redis.call('SREM', root .. 'without:' .. tool, call)
    if table.concat(fields(call, 'state', 'reason'), ' ') == 'held no_worker' then
      transition(call, 'held', 'queued', { op = 'free', actor = 'publish', tool = tool })
      enqueue(call, 0)
      freed = freed + 1
    end
  end
end
local version = changed and redis.call('INCR', root .. 'tools_version') or redis.call('GET', root .. 'tools_version')
return { tonumber(version or '0'), freed }
