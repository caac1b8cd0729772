-- Prelude: call ids that came before in another turn of the scope, and what goes out in the place of such an id.
-- `reply_ids:<scope>` maps each id that is in use to the key of the turn that used it first. Its field "" counts the
-- scope's records with an id: with the last of them `forget` removes it all.
-- uses: submission
local SPECS_A_STEP = 1000 -- Lua hands a command a few thousand arguments at most

-- 24 letters for as many digits of the call key. A call that is named by an intent may stand in several turns, so half
-- of them are of the turn's key then.
local function stand_in(spec)
  local of_turn = spec.asked.by_intent and 12 or 0
  local digits = string.sub(spec.call, 1, 24 - of_turn) .. string.sub(turn_key, 1, of_turn)
  local letters = string.gsub(digits, '%x', function(digit)
    return string.char(97 + tonumber(digit, 16))
  end)
  return 'call_' .. letters
end

-- Set `reply_id` of each spec whose id another turn used first. A stand-in is in use from now on, too: a model may
-- imitate the ids that it reads. Equal ids of one turn are not looked at; history and replies tell them apart by order.
local function choose_reply_ids(specs)
  local in_use = root .. 'reply_ids:' .. specs[1].asked.scope
  for from = 1, #specs, SPECS_A_STEP do
    local to, ids, new = math.min(#specs, from + SPECS_A_STEP - 1), { '' }, 0
    for i = from, to do
      ids[#ids + 1] = specs[i].asked.call_id
    end
    local users = redis.call('HMGET', in_use, unpack(ids))
    local used = { '', 0 }
    for i = from, to do
      local spec, user = specs[i], users[i - from + 2]
      if user and user ~= turn_key then
        spec.reply_id = stand_in(spec)
      end
      if user ~= turn_key then
        used[#used + 1], used[#used + 2] = spec.reply_id or spec.asked.call_id, turn_key
      end
      new = new + (spec.is_new and 1 or 0)
    end
    used[2] = whole(tonumber(users[1] or '0') + new)
    redis.call('HSET', in_use, unpack(used))
  end
end
