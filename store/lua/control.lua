#!lua flags=allow-oom
-- control: set or clear what a person says about which calls may run now. It wins over the code's word.
-- uses: ledger controls
-- KEYS[1] = root of the namespace
-- ARGV    = kind ("limit" | "queue-limit" | "rate" | "pause"), target (tool:<name> | of a limit also tenant:<name> and
--           tenant:*, every tenant without one of its own | of a queue limit queue:<name>, tenant:<name> or tenant:* | of
--           a pause also tenant:<name> and queue:<name>), value (most calls at once | most calls that wait | calls/ms |
--           "on" or "off"; "" clears it), actor, reason
-- RETURNS the setting that is stored now, "" for none
-- INVARIANT changes one setting, and the flag that counts those of its kind, and walks through nothing: who waited
--           goes on with the next sweep. Sent twice the first one stands, with its time. A lowered limit and a pause stop
--           no running call; they only let no more in. A pause that is over stays as "off", with its beginning and its
--           end: deadlines are prolonged by it.
local EARLIER = 20 -- pauses that are remembered
local kind, value, actor, reason = ARGV[1], ARGV[3], ARGV[4], ARGV[5]
local name = kind .. ' ' .. ARGV[2]
local before = redis.call('HGET', CONTROLS, name)
local was = setting_of(before)
-- Queue limits and pauses are looked for only where there are any: two flags count them.
local function counts(setting)
  return kind == 'pause' and setting == 'on' or kind == 'queue-limit' and (setting or '') ~= ''
end
local function count_those_in_force()
  local flag = kind == 'pause' and 'pauses' or 'queue_limits'
  local by = (counts(value) and 1 or 0) - (counts(was) and 1 or 0)
  if by ~= 0 and redis.call('HINCRBY', root .. 'flags', flag, by) <= 0 then
    redis.call('HDEL', root .. 'flags', flag)
  end
end
if value == '' then
  count_those_in_force()
  redis.call('HDEL', CONTROLS, name)
  return ''
end
local known = was and cjson.decode(string.sub(before, #was + 2)) or {}
if was == value and (value == 'off' or (known.by == actor and known.reason == reason)) then
  return before
elseif value == 'off' and not was then
  return ''
end
local about = { by = actor, reason = reason, at = now }
if kind == 'pause' then
  about.since = was == 'on' and known.since or now
  about.earlier, about.paused_by = known.earlier, value == 'off' and known.by or nil
  if value == 'on' and was == 'off' then
    about.earlier = about.earlier or {}
    table.insert(about.earlier, { known.since, known.at })
    if #about.earlier > EARLIER then
      table.remove(about.earlier, 1)
    end
  end
end
local stored = value .. ' ' .. cjson.encode(about)
count_those_in_force()
redis.call('HSET', CONTROLS, name, stored)
if kind == 'limit' then
  count_anew()
end
return stored
