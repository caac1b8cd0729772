-- Prelude: the fence as a high-water mark. A process that has seen a higher fence than this server knows proves that the
-- server has lost writes: the flag then stands, and mutating calls are held, until a person accepts the loss.
local function highest_fence(seen)
  local fence = tonumber(redis.call('GET', root .. 'fence') or '0')
  if fence >= seen then
    return fence
  end
  redis.call('HSET', root .. 'flags', 'went_back', whole(now), 'went_back_from', whole(seen), 'went_back_to', whole(fence))
  redis.call('SET', root .. 'fence', whole(seen))
  return seen
end
