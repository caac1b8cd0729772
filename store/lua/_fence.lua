-- Prelude: the fence as a watermark. A process that has seen a higher fence than this server knows proves that the
-- server has lost writes: the flag then stands, and mutating calls are held, until a person accepts the loss. The first
-- proof stands; later ones add nothing.
local function flag_step_back(seen, known, why)
  if redis.call('HSETNX', root .. 'flags', 'went_back', now_text) == 1 then
    redis.call('HSET', root .. 'flags', 'went_back_from', whole(seen), 'went_back_to', whole(known),
      'went_back_because', why)
  end
end

local function highest_fence(seen)
  local fence = tonumber(redis.call('GET', root .. 'fence') or '0')
  if fence >= seen then
    return fence
  end
  flag_step_back(seen, fence, 'a process has seen a higher fence')
  redis.call('SET', root .. 'fence', whole(seen))
  return seen
end

-- Somebody knows this call under a fence that its record (state and fence, or nothing) does not know. No proof where
-- retention may have removed the record, or where a person has accepted the loss of this fence already.
local function compare_record(call, state, stored, held)
  if (state and stored >= held) or held > 2 ^ 53 then
    return -- no server gives out more fences than that: it was typed by a person
  end
  local known = redis.call('HMGET', root .. 'marks', 'removed_fence', 'accepted_fence')
  local is_accepted = held <= tonumber(known[2] or '-1')
  if is_accepted or (not state and held <= tonumber(known[1] or '-1')) then
    return
  end
  flag_step_back(held, stored, (state and 'what is stored is older than what was told of call ' or
    'the record is gone of call ') .. call)
  highest_fence(held) -- no fence is given out a second time
end

-- The same proof from one attempt: its record is gone, or knows no claim under its fence, or another one, since the
-- server has given that fence out a second time. It comes also where others have claimed so much meanwhile that the
-- mark was passed.
-- A token that ends in "~" is of a read that was claimed while too few replicas answered: a failover may forget it.
local function compare_attempt(call, fence, token)
  if string.sub(token, -1) == '~' then
    return
  end
  local got = fields(call, 'state', 'fence', 'token')
  local stored, held = tonumber(got[2] or '0'), tonumber(fence)
  if stored == held and got[3] ~= token then
    stored = held - 1
  end
  compare_record(call, got[1], stored, held)
end
