-- Prelude: any change of a call's state: record, index, counters, history and event in one step.
-- uses: history ledger
local NEVER_RUN = { refused = true, cancelled = true, expired = true }
local ARGUMENTS_KEPT = 1024

-- A refused call may name a tool that a model made up: all of those are counted under one name.
local function counted_as(tool, from, to)
  local is_made_up = not from and to == 'refused' and redis.call('HEXISTS', root .. 'newest', tool) == 0
  return is_made_up and '?' or tool
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
    count(event.tool, from, -1)
  else
    add_to('admitted', 1)
  end
  change_index(call, from, to)
  local counted = counted_as(event.tool, from, to)
  count(counted, to, 1)
  event.counted_as = counted ~= event.tool and counted or nil
  event.from = from or nil
  event.to = to
  keep_event(call, event)
end

-- One answer to an inbox entry, in the form of PROTOCOL.md; what is left out of `told` is empty.
local function write_answer(stream, told)
  redis.call('XADD', stream, '*', 'call', told.call, 'position', told.position, 'id', told.id or '', 'name', told.name,
    'state', told.state, 'result', told.result or '', 'error', told.error or '', 'marks', told.marks or '',
    'reply_id', told.reply_id or '')
end
