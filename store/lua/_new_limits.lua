-- Prelude: limits that are newer than calls which run.

-- Give a slot to each running call that has none, since its limit is newer than its claim: there are no more of them than
-- slots of workers.
local function count_running()
  redis.call('HDEL', CONTROLS, 'uncounted')
  local known = {}
  for _, call in ipairs(redis.call('ZRANGE', root .. 'leases', 0, -1)) do
    local got = fields(call, 'tool', 'tenant')
    local limits = limits_of(got[1] or '', got[2])
    local both = limits[1] .. '\n' .. limits[2]
    known[both] = known[both] or controls_for(limits, '')
    for i, limit in ipairs(limits) do
      if known[both][i] then
        redis.call('SADD', root .. 'slots:' .. limit, call)
      end
    end
  end
end
