#!lua flags=allow-oom
-- publish: a worker publishes its tools with specs and limits; calls that were held until such a worker came are queued.
-- uses: ledger queue flow
-- KEYS[1] = root of the namespace
-- ARGV    = tools[name, version, spec (JSON), cap (most calls at once over all workers, "" for no limit),
--           rate (calls/ms, "" for none)]
-- RETURNS {version number of the published specs, number of calls that were freed}
-- INVARIANT publishing the same specs again changes no version number.
local MOST = 1000 -- calls set going per tool in this step; the sweep and the next publish do the rest
local changed, freed = false, 0
for i = 1, #ARGV, 5 do
  local tool, field, spec, cap = ARGV[i], ARGV[i] .. '\n' .. ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  if redis.call('HGET', root .. 'tools', field) ~= spec or redis.call('HGET', root .. 'newest', tool) ~= ARGV[i + 1] then
    changed = true -- also where a deploy is rolled back to a version that was here before
    redis.call('HSET', root .. 'tools', field, spec)
    redis.call('HSET', root .. 'newest', tool, ARGV[i + 1])
  end
  local limit = 'code limit tool:' .. tool
  if cap == '' then
    redis.call('HDEL', CONTROLS, limit)
  elseif redis.call('HSET', CONTROLS, limit, cap) == 1 then
    count_anew()
  end
  if ARGV[i + 4] == '' then
    redis.call('HDEL', CONTROLS, 'code rate tool:' .. tool)
  else
    redis.call('HSET', CONTROLS, 'code rate tool:' .. tool, ARGV[i + 4])
  end
  wake_into_free_slots('tool:' .. tool, MOST)
  for _, call in ipairs(redis.call('SRANDMEMBER', root .. 'no_worker:' .. tool, MOST)) do
    free(call, { op = 'free', actor = 'publish', tool = tool })
    freed = freed + 1
  end
end
local version = changed and redis.call('INCR', root .. 'tools_version') or redis.call('GET', root .. 'tools_version')
return { tonumber(version or '0'), freed }
