-- Prelude: the ledger of states: a call's record, the indexes and the counters, in one step. `moves` has what seldom
-- happens to a call.
-- uses: batch
local moves = 0

-- Per tool only: whoever reads adds them up, so that no state is counted twice on the way of each call.
local function count(tool, state, by)
  add_to('tool:' .. state .. ':' .. tool, by)
end

-- The moment of a move for its index, ms with three decimals. Redis' clock stands still within a script: each further
-- move counts as one microsecond later, and takes longer than that, so that no two moves share a moment, also not of two
-- scripts. A double holds such numbers exactly enough until the year 2255.
local function moment()
  local at = micros + moves
  moves = moves + 1
  return string.format('%d.%03d', at / 1000, at % 1000)
end

-- The calls of a state by when they entered it, `in:<state>`. Those that run have `leases` for that.
local function change_index(call, from, to)
  if from and from ~= 'running' then
    redis.call('ZREM', root .. 'in:' .. from, call)
  end
  if to ~= 'running' then
    redis.call('ZADD', root .. 'in:' .. to, moment(), call)
  end
end

-- The one write of a state.
local function write_state(call, to, ...)
  redis.call('HSET', record_of(call), 'state', to, 'changed_at', now_text, ...)
end

-- Change the state in a way that is usual: the record says all of it, so that no line of a history is stored. `event` has
-- op, actor, fence, attempt and tool, numbers as text; `more` is what else changes in the record, as name, value, ...: one
-- write is cheaper than two.
local function move_as_usual(call, from, to, event, more)
  write_state(call, to, unpack(more))
  change_index(call, from, to)
  count(event.tool, from, -1)
  count(event.tool, to, 1)
  publish(call, '{"op":"' .. event.op .. '","at":' .. now_text .. ',"from":"' .. from .. '","to":"' .. to .. '","actor":'
    .. cjson.encode(event.actor) .. ',"fence":' .. event.fence .. ',"attempt":' .. event.attempt .. ',"tool":'
    .. cjson.encode(event.tool) .. '}')
end
