-- Prelude: the answers to an inbox entry, one for each call of its submission.
-- uses: flow submission

-- The error of a conflict, as outcome_codec.read_conflict makes it: what became of the first call. Its own error is
-- taken over as it is, since numbers would lose digits.
local function conflict(call, by_intent)
  local got = fields(call, 'tool', 'state', 'attempt', 'reason', 'error', 'may_have_run')
  local first = cjson.encode({ tool = got[1], state = got[2], attempt = tonumber(got[3] or '0'),
    reason = got[2] == 'held' and got[4] ~= '' and got[4] or nil, may_have_run = got[6] and true or nil })
  if got[2] ~= 'succeeded' and got[5] and got[5] ~= '' then
    first = string.sub(first, 1, -2) .. ',"error":' .. got[5] .. '}'
  end
  local named = by_intent and 'this intent key was used before' or 'this call id was used before in this turn'
  local message = named .. ' with another tool or other arguments; not run. The first call is ' .. got[2]
  return '{"code":"conflict","message":' .. cjson.encode(message) .. ',"details":{"named_by":"'
    .. (by_intent and 'intent' or 'turn') .. '","first":' .. first .. '}}'
end

-- What goes out in the place of the call's id in this entry; "" where the id itself does.
local function reply_id_of(spec)
  local is_stored = not spec.is_new and not spec.is_of_another_turn
  return spec.reply_id or is_stored and fields(spec.call, 'reply_id')[1] or ''
end

-- The same for all calls at once, as JSON: place -> id. An entry hears of it before any call is at rest.
local function reply_ids_of(calls)
  local chosen = {}
  for _, spec in ipairs(calls) do
    local reply_id = reply_id_of(spec)
    chosen[spec.asked.position] = reply_id ~= '' and reply_id or nil
  end
  return cjson.encode(chosen)
end

-- An inbox entry hears of each call once it is at rest; a conflict, and what is at rest already, at once. It hears of
-- them in its own places and under its own ids, which an intent key may have found under others.
local function answer_on_stream(spec, verdict)
  local call, asked = spec.call, spec.asked
  local position, id = asked.position, asked.call_id or ''
  local reply_id = reply_id_of(spec)
  if verdict == 'conflict' then
    write_answer(answers, { call = call, position = position, id = id, name = asked.tool, state = 'conflict',
      error = conflict(call, asked.by_intent), reply_id = reply_id })
    return
  end
  local got, line = fields(call, 'state', 'answers'), cjson.encode({ answers, position, id, reply_id })
  if OPEN[got[1]] then
    redis.call('HSET', record_of(call), 'answers', got[2] and got[2] .. '\n' .. line or line)
  end
  if not OPEN[got[1]] or got[1] == 'unknown' then
    tell_harness(call, line)
  end
end
