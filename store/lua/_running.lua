-- Prelude: the calls that run, for who looks at them. They have no index by time: there are no more of them than slots of
-- workers, and each would cost every call two more commands.

-- Those that were claimed in this time (ms), the oldest first, as call, moment, call, moment, ...
local function running_calls(after, before)
  local found, flat = {}, {}
  for _, call in ipairs(redis.call('ZRANGE', root .. 'leases', 0, -1)) do
    local at = tonumber(fields(call, 'claimed_at')[1] or '0')
    if at >= after and at <= before then
      found[#found + 1] = { call, at }
    end
  end
  table.sort(found, function(one, other)
    return one[2] < other[2] or (one[2] == other[2] and one[1] < other[1])
  end)
  for i, one in ipairs(found) do
    flat[2 * i - 1], flat[2 * i] = one[1], one[2]
  end
  return flat
end
