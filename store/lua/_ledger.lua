-- Prelude: the one way in which a call changes its state: record, index, counters and history in one step.
-- uses: history
local NEVER_RUN = { refused = true, cancelled = true, expired = true }
local ARGUMENTS_KEPT = 1024
local moves = 0

-- Per tool only: whoever reads adds them up, so that no state is counted twice on the way of each call.
local function count(tool, state, by)
  add_to('tool:' .. state .. ':' .. tool, by)
end

-- A refused call may name a tool that a model made up: all of those are counted under one name.
local function counted_as(tool, from, to)
  local is_made_up = not from and to == 'refused' and redis.call('HEXISTS', root .. 'newest', tool) == 0
  return is_made_up and '?' or tool
end

-- The moment of a move for its index, ms with three decimals. Redis' clock stands still within a script: each further
-- move counts as one microsecond later, and takes longer than that, so that no two moves share a moment, also not of two
-- scripts. A double holds such numbers exactly enough until the year 2255.
local function moment()
  local at = micros + moves
  moves = moves + 1
  return string.format('%d.%03d', at / 1000, at % 1000)
end

-- What ends without having run gives its arguments back, but for a beginning to look at: nothing will need them.
local function give_arguments_back(call)
  local got = fields(call, 'args', 'attempt')
  local args = got[1]
  if args and #args > ARGUMENTS_KEPT and (tonumber(got[2] or '') or 0) == 0 then
    local kept = string.sub(args, 1, ARGUMENTS_KEPT)
    if string.find(args, '^[\128-\191]', ARGUMENTS_KEPT + 1) then
      kept = string.gsub(kept, '[\192-\255]?[\128-\191]*$', '') -- no half of a character
    end
    redis.call('HSET', record_of(call), 'args', cjson.encode({ ['$cut'] = kept, bytes = #args }))
  end
end

-- The one write of a state.
local function write_state(call, to, ...)
  redis.call('HSET', record_of(call), 'state', to, 'changed_at', now_text, ...)
end

-- Change the state: record, index, counters, history. `event` needs tool and op; from is false at admission. `more` is
-- what else changes in the record, as name, value, ...: one write is cheaper than two.
local function move(call, from, to, event, more)
  if from then
    write_history_out(call)
  end
  write_state(call, to, 'reason', event.reason or '', 'history', 1, unpack(more or {}))
  if NEVER_RUN[to] then
    give_arguments_back(call)
  end
  if from then
    redis.call('ZREM', root .. 'in:' .. from, call)
    count(event.tool, from, -1)
  else
    add_to('admitted', 1)
  end
  redis.call('ZADD', root .. 'in:' .. to, moment(), call)
  local counted = counted_as(event.tool, from, to)
  count(counted, to, 1)
  event.counted_as = counted ~= event.tool and counted or nil
  if not OPEN[to] and (not from or OPEN[from]) then
    add_to('settled', 1)
  elseif OPEN[to] and from and not OPEN[from] then
    add_to('settled', -1)
  end
  event.from = from or nil
  event.to = to
  keep_event(call, event)
end

-- The same for what usually happens to a call: its record says all of it, so that no line of a history is stored, and
-- `more` clears what an attempt before has left.
local function move_as_usual(call, from, to, event, more)
  write_state(call, to, unpack(more))
  redis.call('ZREM', root .. 'in:' .. from, call)
  redis.call('ZADD', root .. 'in:' .. to, moment(), call)
  count(event.tool, from, -1)
  count(event.tool, to, 1)
  if not OPEN[to] then
    add_to('settled', 1)
  end
  publish(call, '{"op":"' .. event.op .. '","at":' .. now_text .. ',"from":"' .. from .. '","to":"' .. to .. '","actor":'
    .. cjson.encode(event.actor) .. ',"fence":' .. event.fence .. ',"attempt":' .. event.attempt .. ',"tool":'
    .. cjson.encode(event.tool) .. '}')
end

-- One answer to an inbox entry, in the form of PROTOCOL.md; what is left out of `told` is empty.
local function write_answer(stream, told)
  redis.call('XADD', stream, '*', 'call', told.call, 'position', told.position, 'id', told.id or '', 'name', told.name,
    'state', told.state, 'result', told.result or '', 'error', told.error or '', 'marks', told.marks or '',
    'reply_id', told.reply_id or '')
end
