-- Prelude: the fence as a high-water mark. A process that has seen a higher fence than this server knows proves that the
-- server has lost writes: the flag then stands, and mutating calls are held, until a person accepts the loss.
local function flag_step_back(seen, fence)
  redis.call('HSET', root .. 'flags', 'went_back', whole(now), 'went_back_from', whole(seen), 'went_back_to', whole(fence))
end

-- The same proof from one attempt: its record knows no claim under its fence, or another one, since the server has given
-- that fence out a second time. It comes also where others have claimed so much meanwhile that the mark was passed.
local function judge_record(stored_fence, stored_token, fence, token)
  local stored = tonumber(stored_fence or '0')
  if stored < tonumber(fence) or (stored == tonumber(fence) and stored_token ~= token) then
    flag_step_back(tonumber(fence), stored)
  end
end

local function highest_fence(seen)
  local fence = tonumber(redis.call('GET', root .. 'fence') or '0')
  if fence >= seen then
    return fence
  end
  flag_step_back(seen, fence)
  redis.call('SET', root .. 'fence', whole(seen))
  return seen
end
