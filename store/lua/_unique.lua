-- Prelude: unique keys: the index of the calls that may be the same action. `unique:<key>` lists, by score: 0 the call
-- that has the key; a place (of :admissions) a call that follows it, the oldest first; +inf a failed call without it,
-- which would have to take it again. Of a tool that holds duplicates every open call has a place, and no call has the key.
-- uses: held
-- Invariant: a key has one call at most, and only that one is ever queued or running; what follows it gets its outcome.
-- One function makes all others when it is first called: a call without a unique key pays for that one alone.
local LAST_PLACE = '9007199254740992'
local unique_made
local function unique()
  if unique_made then
    return unique_made
  end
  local function index_of(key)
    return root .. 'unique:' .. key
  end

  local function next_place()
    return redis.call('INCR', root .. 'admissions')
  end

  local function has_followers(key)
    return redis.call('ZCOUNT', index_of(key), 1, LAST_PLACE) > 0
  end

  -- The oldest follower takes the key and goes on as any call does whose reason to wait is gone.
  local function promote(key, call)
    local got = fields(call, 'state', 'reason', 'tool')
    if got[1] ~= 'held' or got[2] ~= 'duplicate' then
      redis.call('ZREM', index_of(key), call) -- its record is gone
      return
    end
    redis.call('ZADD', index_of(key), 0, call)
    redis.call('HDEL', record_of(call), 'follows', 'first_unknown')
    free(call, { op = 'free', actor = 'unique', tool = got[3] })
  end

  -- The key of a call that has ended for good lasts as long as its tool says, where it says so.
  local function is_over(key, call)
    local got = fields(call, 'state', 'unique_for', 'changed_at')
    return not got[1] or (got[2] and not OPEN[got[1]] and tonumber(got[3]) + tonumber(got[2]) <= now
      and not has_followers(key))
  end

  -- A call that has ended leaves the key; one that an operator may run again stays listed, so that whatever key of the
  -- keyring is the newest by then, all who could run meet in one index.
  local function give_up(key, call, state)
    if state == 'failed' then
      redis.call('ZADD', index_of(key), '+inf', call)
    else
      redis.call('ZREM', index_of(key), call)
    end
  end

  -- The call that has the key; or nil, and whether calls are listed that would have to take it again.
  local function holder_of(key)
    local first = redis.call('ZRANGE', index_of(key), 0, 0, 'WITHSCORES')
    if not first[1] or first[2] == 'inf' then
      return nil, first[1] ~= nil
    elseif first[2] ~= '0' then
      promote(key, first[1])
    elseif is_over(key, first[1]) then
      give_up(key, first[1], fields(first[1], 'state')[1])
    else
      return first[1]
    end
    return holder_of(key)
  end

  -- What became of the call that has the key, as a refusal tells it; its own error is taken over as it is.
  local function describe_first(call)
    local got = fields(call, 'tool', 'state', 'attempt', 'reason', 'error', 'may_have_run', 'turn', 'call_id')
    local first = cjson.encode({ call = call, turn = got[7], id = got[8] or nil, tool = got[1], state = got[2],
      attempt = tonumber(got[3] or '0'), reason = got[2] == 'held' and got[4] ~= '' and got[4] or nil,
      may_have_run = got[6] and true or nil })
    if got[2] ~= 'succeeded' and got[5] and got[5] ~= '' then
      first = string.sub(first, 1, -2) .. ',"error":' .. got[5] .. '}'
    end
    return first, got[2]
  end

  local function meet(spec, more, key, first)
    local got, is_equal_call = fields(first, 'fp', 'state'), false
    for i = spec.fp_from, spec.fp_to do
      is_equal_call = is_equal_call or ARGV[i] == got[1]
    end
    if is_equal_call then
      more.unique, more.follows, more.first_unknown = key, first, got[2] == 'unknown' and 1 or nil
      spec.follows = first
      redis.call('ZADD', index_of(key), next_place(), spec.call)
      return 'held', 'duplicate'
    end
    local told, state = describe_first(first)
    local message = 'not run: call ' .. string.sub(first, 1, 12) .. ' of this tool has the same ' .. spec.asked.unique_by
      .. ' and other arguments; it is ' .. state
    more.error = '{"code":"unique_taken","message":' .. cjson.encode(message) .. ',"details":{"unique_by":'
      .. cjson.encode(spec.asked.unique_by) .. ',"first":' .. told .. '}}'
    return 'refused', 'unique_taken'
  end

  -- A new call whose tool names a unique key takes it, or meets the call that has it: then its state and reason. Under
  -- whichever key of the keyring the calls before it were stored, it joins them there.
  local function join(spec, more)
    local home
    for i = spec.unique_from, spec.unique_to do
      local first, is_listed = holder_of(ARGV[i])
      if first then
        return meet(spec, more, ARGV[i], first)
      end
      home = home or (is_listed and ARGV[i])
    end
    more.unique = home or ARGV[spec.unique_from]
    redis.call('ZADD', index_of(more.unique), 0, spec.call)
  end

  -- The same for a tool that holds duplicates: the oldest equal call that is open, for a person to compare.
  local function join_equal(spec, more)
    more.unique = ARGV[spec.unique_from]
    for i = spec.unique_to, spec.unique_from, -1 do
      local oldest = redis.call('ZRANGE', index_of(ARGV[i]), 0, 0)[1]
      if oldest then
        more.duplicate_of, more.unique = oldest, ARGV[i]
      end
    end
    redis.call('ZADD', index_of(more.unique), next_place(), spec.call)
  end

  -- A call that is to run again takes its key again. Returns the call that has it, where another one has.
  local function take_again(call)
    local got = fields(call, 'unique', 'hold_duplicates')
    if not got[1] then
      return nil
    elseif got[2] then
      redis.call('ZADD', index_of(got[1]), 'NX', next_place(), call)
      return nil
    end
    local first = holder_of(got[1])
    if first and first ~= call then
      return first
    end
    redis.call('ZADD', index_of(got[1]), 0, call)
    redis.call('HDEL', record_of(call), 'follows', 'first_unknown')
  end

  unique_made = { index_of = index_of, has_followers = has_followers, holder_of = holder_of, give_up = give_up,
    join = join, join_equal = join_equal, take_again = take_again }
  return unique_made
end
