-- Prelude: what follows once a call is at rest. RQ's view, its lanes, its followers, the inbox, those who wait, its unique
-- key.
-- Invariant: a call that comes to rest passes its turn on in the same script; nothing has to be noticed later.
-- uses: moves
local RQ_RESULT_TTL = 500
local ANSWERS_TTL = 86400
local following

-- Whether the call may have run in moments that the store has lost, whatever its attempts say: it was held for that
-- reason, or it waits while the flag stands, or it was admitted before such a loss was accepted. Reads cannot do harm.
local function may_have_run(call)
  local got = fields(call, 'may_have_run', 'effect', 'admitted_at')
  if got[1] then
    return true
  end
  local flags = redis.call('HMGET', root .. 'flags', 'went_back', 'loss_accepted_at')
  local is_older = tonumber(flags[2] or '-1') >= tonumber(got[3] or '0')
  if got[2] == 'read' or not (flags[1] or is_older) then
    return false
  end
  redis.call('HSET', record_of(call), 'may_have_run', 1)
  return true
end

-- 'none' where no attempt before can have had an effect: of a mutating call such an attempt leads to unknown, unless
-- someone lets it run again. Else nil.
local function effect_so_far(call, attempts)
  local got = fields(call, 'effect', 'ran_before', 'not_started')
  local is_untouched = attempts <= tonumber(got[3] or '0')
  local none = is_untouched or (got[1] == 'mutating' and not got[2])
  return none and not may_have_run(call) and 'none' or nil
end

local function not_run(call)
  return may_have_run(call) and 'not run since the store has lost writes' or 'not run'
end

local function tell_follower(follower, settled_as)
  local got = fields(follower, 'state', 'tool')
  if got[1] ~= 'held' and got[1] ~= 'queued' then
    return -- cancelled or expired meanwhile
  elseif settled_as == 'succeeded' then
    redis.call('HINCRBY', record_of(follower), 'predecessors', -1)
    free_if_next(follower)
  elseif got[1] == 'held' then
    redis.call('HSET', record_of(follower), 'error', cjson.encode({
      code = 'predecessor', message = not_run(follower) .. ': the call it had to follow ended as ' .. settled_as,
      details = { predecessor_state = settled_as } }))
    transition(follower, 'held', 'refused',
      { op = 'free', actor = 'order', tool = got[2], reason = 'predecessor ' .. settled_as })
  end
end

local function keep_answers(stream)
  redis.call('EXPIRE', stream, ANSWERS_TTL)
end

-- Facts about the answer of a call at rest as JSON text, "" for none; put together as text, which leaves numbers as
-- they are. The same as outcome_codec reads for everyone else.
local function told_marks(call, state)
  local got = fields(call, 'marks', 'may_have_run', 'argument_errors', 'forgotten', 'cancel_requested', 'reason',
    'follows')
  local facts = {}
  facts[1] = got[1] and #got[1] > 2 and string.sub(got[1], 2, -2) or nil
  if got[2] and state ~= 'succeeded' then
    facts[#facts + 1] = '"may_have_run": true'
  end
  if got[3] then
    facts[#facts + 1] = '"argument_errors": ' .. got[3]
  end
  if got[4] then
    facts[#facts + 1] = string.gsub(got[4], '^(%d+) (%d+) (%d+)$',
      '"forgotten": true, "settled_at": %1, "forgotten_at": %2, "size": %3')
  end
  if got[5] then
    facts[#facts + 1] = '"cancel_requested": true'
  end
  if state == 'unknown' and got[6] and got[6] ~= '' then
    facts[#facts + 1] = '"reason": ' .. cjson.encode(got[6])
  end
  if got[7] then
    facts[#facts + 1] = '"follows": "' .. got[7] .. '"'
  end
  return #facts > 0 and '{' .. table.concat(facts, ', ') .. '}' or ''
end

-- Write what became of the call to the answer streams that inbox entries asked for; they live for a day. Each line is
-- {stream, position, id, reply id} as JSON: one call may stand in several entries, under other ids and places in each.
local function tell_harness(call, asking)
  each(asking, function(line)
    local got = fields(call, 'tool', 'state', 'result', 'error')
    local ask = cjson.decode(line)
    write_answer(ask[1], { call = call, position = ask[2], id = ask[3], name = got[1], state = got[2], result = got[3],
      error = got[4], marks = told_marks(call, got[2]), reply_id = ask[4] })
    keep_answers(ask[1])
  end)
end

-- RQ's view of a call at rest. RQ forgets a job after a while; a forgotten one is not written again in part.
local function show_at_rest(job, queue, to)
  local kind = (to == 'failed' or to == 'unknown') and 'failed' or 'finished'
  local registry = rq .. kind .. ':' .. space .. '.' .. queue
  local seconds = math.floor(now / 1000)
  redis.call('ZREMRANGEBYSCORE', registry, '-inf', seconds)
  if redis.call('EXPIRE', rq .. 'job:' .. job, RQ_RESULT_TTL) == 1 then
    redis.call('HSET', rq .. 'job:' .. job, 'status', kind)
    redis.call('ZADD', registry, seconds + RQ_RESULT_TTL, job)
  end
end

-- The call has come to rest: its job, its lanes, its followers, those who wait for its turn.
local function on_rest(call, to, tool, about)
  if not about.is_shown_by_worker then
    show_at_rest(about.job, about.queue, to)
  end
  if to == 'succeeded' then
    redis.call('HDEL', root .. 'argument_errors:' .. (about.scope or ''), tool)
  end
  if to ~= 'unknown' and about.lanes then
    each(about.lanes, function(lane)
      redis.call('ZREM', root .. 'lane:' .. lane, call)
      local first = redis.call('ZRANGE', root .. 'lane:' .. lane, 0, 0)[1]
      if first then
        free_if_next(first)
      end
    end)
  end
  local followers = redis.call('SMEMBERS', root .. 'followers:' .. call)
  if followers[1] then
    redis.call('DEL', root .. 'followers:' .. call)
  end
  for _, follower in ipairs(followers) do
    tell_follower(follower, to)
  end
  if about.answers then
    tell_harness(call, about.answers)
  end
  redis.call('PUBLISH', root .. 'wake:' .. about.turn_key, call)
  if about.unique then
    following().leave(call, about.unique, to, about)
  end
end
