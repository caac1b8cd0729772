#!lua flags=allow-oom
-- repush: the part of recovery that finds queued calls whose pointer was lost between the queue and a claim. It also
-- removes what RQ's registry of started jobs shows of dead workers.
-- uses: ledger queue flow
-- KEYS[1] = root of the namespace
-- ARGV    = queue, grace_ms, most (calls to push again in this step)
-- RETURNS {number pushed again, 1 where more may be left}
-- INVARIANT the queue is first in, first out: whoever was pushed before its head, and is still queued, has been
--           popped. A look remembers that border; what is below it a grace later was lost, not in flight. Woken calls
--           stand at the front under their old place: they mark no border. A doubled pointer is harmless.
local queue, grace, most = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local list, pushed, scan = queue_key(queue), root .. 'pushed:' .. queue, root .. 'pointer_scan'
local LOOKED_AT = 64

-- The place of the first call that stands in line in the usual way; nil where it cannot be told now.
local function find_border()
  local front = redis.call('LRANGE', list, 0, LOOKED_AT - 1)
  for _, job in ipairs(front) do
    local call = string.sub(job, 1, 32)
    local place = redis.call('ZSCORE', pushed, call)
    if place and not fields(call, 'woken')[1] then
      return tonumber(place)
    end
  end
  if #front < LOOKED_AT then
    return tonumber(redis.call('GET', root .. 'pushes') or '0') + 1
  end
end

local function push_again(call)
  local got = fields(call, 'fp', 'tool', 'state', 'woken_at')
  local woken_at = tonumber(got[4] or '0')
  if woken_at > now - grace and woken_at <= now then
    return 0 -- woken just now
  end
  redis.call('ZREM', pushed, call)
  if got[3] ~= 'queued' then
    return 0
  end
  local job = job_of(call, got[1])
  redis.call('LREM', list .. ':intermediate', 0, job)
  push(call, queue, job)
  note(call, { op = 'repush', actor = 'recovery', tool = got[2], reason = 'its pointer was lost' })
  return 1
end

-- Entries of RQ's registry of started jobs whose run is over: of workers that have died since they showed them.
local function remove_ended()
  local wip = rq .. 'wip:' .. space .. '.' .. queue
  for _, entry in ipairs(redis.call('ZRANGE', wip, 0, -1)) do
    local got = fields(string.sub(entry, 1, 32), 'state', 'token')
    if got[1] ~= 'running' or got[2] ~= string.sub(entry, 67) then
      redis.call('ZREM', wip, entry)
    end
  end
end

remove_ended()
local again = 0
local border, since = string.match(redis.call('HGET', scan, queue) or '', '^(%d+) (%d+)$')
if border and tonumber(since) > now then
  border = nil -- the clock went back: that look is no measure of time any more
end
if border and now - tonumber(since) >= grace then
  local lost = redis.call('ZRANGEBYSCORE', pushed, '-inf', '(' .. border, 'LIMIT', 0, most)
  for _, call in ipairs(lost) do
    again = again + push_again(call)
  end
  if #lost == most then
    return { again, again > 0 and 1 or 0 }
  end
  border = nil
end
local place = not border and find_border()
if place then
  redis.call('HSET', scan, queue, whole(place) .. ' ' .. now_text)
end
return { again, 0 }
