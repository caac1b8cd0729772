-- Prelude: what the calls that follow another one by a unique key are told when that one moves; and who keeps the key.
-- uses: unique
-- Invariant: a call that follows gets one outcome; the key goes on only from a call that cannot have had its effect.
-- One function makes all others when it is first called, as in _unique.
local FOLLOWERS_A_STEP, BYTES_A_STEP = 50, 1000000
local following_made
function following()
  if following_made then
    return following_made
  end
  local index_of, has_followers, holder_of = unique().index_of, unique().has_followers, unique().holder_of

  -- The facts beside an answer that are facts about whoever gets the same one.
  local function marks_of(state, stored, forgotten)
    local marks = stored and #stored > 2 and cjson.decode(stored) or {}
    marks.durable = nil
    marks.first_state = NEVER_RUN[state] and state or nil
    local settled_at, forgotten_at, size = string.match(forgotten or '', '^(%d+) (%d+) (%d+)$')
    if settled_at then
      marks.forgotten, marks.settled_at = true, tonumber(settled_at)
      marks.forgotten_at, marks.size = tonumber(forgotten_at), tonumber(size)
    end
    return next(marks) and cjson.encode(marks) or ''
  end

  -- The first call is at rest, so the one that follows it is as well: with the same result, or with the same words where
  -- it may have had an effect. Returns the bytes that were copied.
  local function rest_like(call, first)
    local got = fields(first, 'state', 'result', 'error', 'marks', 'forgotten', 'may_have_run')
    local to = got[1] == 'succeeded' and 'succeeded' or 'failed'
    if to == 'failed' and got[6] then
      redis.call('HSET', record_of(call), 'may_have_run', 1)
    end
    local result = to == 'succeeded' and got[2] or ''
    local why = to == 'failed' and got[3] or ''
    redis.call('HDEL', record_of(call), 'first_unknown')
    transition(call, 'held', to, { op = 'follow', actor = 'unique', tool = fields(call, 'tool')[1], reason = first },
      { 'result', result, 'error', why, 'marks', marks_of(got[1], got[4], got[5]), 'settled_by', 'unique',
        'settled_at', now_text })
    return #result + #why
  end

  -- Tell a call that waits which one it follows now, and whether that one is unknown.
  local function point(call, first, is_unknown)
    local got = fields(call, 'follows', 'first_unknown', 'turn_key')
    if got[1] ~= first then
      redis.call('HSET', record_of(call), 'follows', first)
    end
    if is_unknown and not got[2] then
      redis.call('HSET', record_of(call), 'first_unknown', 1)
      redis.call('PUBLISH', root .. 'wake:' .. got[3], call)
    elseif got[2] and not is_unknown then
      redis.call('HDEL', record_of(call), 'first_unknown')
    end
  end

  local function tell(key, call, first, state)
    local got = fields(call, 'state', 'reason')
    if got[1] ~= 'held' or got[2] ~= 'duplicate' then
      redis.call('ZREM', index_of(key), call)
    elseif OPEN[state] then
      point(call, first, state == 'unknown')
    else
      return rest_like(call, first)
    end
    return 0
  end

  -- Bring the followers of a key to where its call stands, from a place on: a bounded number; `follow` does the rest.
  -- Returns how many, and the bytes that were copied.
  local function advance(key, from)
    local first = holder_of(key)
    local state = first and fields(first, 'state')[1]
    local found = first and redis.call('ZRANGEBYSCORE', index_of(key), '(' .. from, LAST_PLACE, 'WITHSCORES',
      'LIMIT', 0, FOLLOWERS_A_STEP) or {}
    local bytes, told = 0, 0
    while told < #found / 2 and bytes < BYTES_A_STEP do
      local call = found[2 * told + 1]
      local done, more = pcall(tell, key, call, first, state)
      if not done then
        redis.call('ZREM', index_of(key), call) -- a record that cannot be read stops no other
        note(call, { op = 'broken', actor = 'unique', tool = fields(call, 'tool')[1] or '', reason = tostring(
          type(more) == 'table' and more.err or more) })
      end
      bytes, told = bytes + (done and more or 0), told + 1
    end
    if told == FOLLOWERS_A_STEP or told < #found / 2 then
      redis.call('ZADD', root .. 'unique_unfinished', found[2 * told], key)
    else
      redis.call('ZREM', root .. 'unique_unfinished', key)
    end
    return told, bytes
  end

  local function advance_followers(key)
    if has_followers(key) then
      advance(key, 0)
    end
  end

  -- Whether a call that has ended cannot have had its effect. `op` is how it came to rest: who resolves it as failed says
  -- so, but for one who gives up asking.
  local function has_no_effect(call, to, op)
    if to == 'succeeded' then
      return false
    end
    local got = fields(call, 'error', 'attempt')
    local why = got[1] and got[1] ~= '' and cjson.decode(got[1]) or {}
    if op == 'resolve' or op == 'reconcile' then
      return why.code ~= 'purged'
    elseif to == 'failed' then
      return why.effect == 'none' and not may_have_run(call)
    end
    return effect_so_far(call, tonumber(got[2] or '0')) == 'none'
  end

  -- The call has come to rest, or is unknown. Its key stays with it unless it has had no effect.
  local function leave(call, key, to, how)
    if how.hold_duplicates then
      if to ~= 'unknown' then
        redis.call('ZREM', index_of(key), call)
      end
      return
    elseif redis.call('ZSCORE', index_of(key), call) ~= '0' then
      unique().give_up(key, call, to) -- it only followed
      return
    end
    if to ~= 'unknown' and has_no_effect(call, to, how.op) then
      unique().give_up(key, call, to)
    end
    advance_followers(key)
  end

  -- A new call that follows one that is at rest already rests at once.
  local function settle_follower(call, first)
    if not OPEN[fields(first, 'state')[1]] then
      rest_like(call, first)
    end
  end

  following_made = { advance = advance, advance_followers = advance_followers, leave = leave,
    settle_follower = settle_follower }
  return following_made
end
