-- Prelude: the next call of a queue, taken together with the end of another one.
-- uses: claiming
local NEXT_KEPT_S = 3600 -- longer than a worker sends a settle again
local MOST_PASSED_OVER = 3

-- The next call that was taken with this word when it came before, as long as it runs under that claim.
local function taken_before(mine)
  local job, its = string.match(redis.call('GET', root .. 'next:' .. mine.slot) or '', '^(%S+) (%S+)$')
  if its == mine.token then
    return job, take_run(job, mine)
  end
end

-- The next pointer of the queue whose call can be run, popped and claimed in this step. None beyond the memory reserve,
-- and none behind an entry that is no pointer: the worker's usual way deals with those.
local function take_next(mine)
  local flags = redis.call('HMGET', root .. 'flags', 'full', 'went_back')
  if flags[1] then
    return
  end
  mine.went_back = flags[2]
  local list, due = queue_key(mine.queue), nil
  for _ = 1, MOST_PASSED_OVER do
    local job = redis.call('LPOP', list)
    if not job then
      return nil, nil, due
    elseif #job ~= 65 or string.sub(job, 33, 33) ~= '-' then
      redis.call('LPUSH', list, job)
      return nil, nil, due
    end
    local is_whole, run = pcall(take_run, job, mine)
    if not is_whole then
      run = {} -- its record is broken, which is no fault of this call: the sweep finds it
    elseif run[1] == 'run' then
      redis.call('SET', root .. 'next:' .. mine.slot, job .. ' ' .. mine.token, 'EX', NEXT_KEPT_S)
      return job, run, due
    end
    due = run[3] and run[3] >= 0 and run[3] or due
  end
  return nil, nil, due
end
