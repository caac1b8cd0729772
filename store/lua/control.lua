#!lua flags=allow-oom
-- control: set or clear what a person says about which calls may run now. It wins over the code's word.
-- uses: ledger controls
-- KEYS[1] = root of the namespace
-- ARGV    = kind ("limit" | "rate" | "pause"), target (tool:<name> | of a limit also tenant:<name> and tenant:*, every
--           tenant without one of its own | of a pause also tenant:<name> and queue:<name>), value (most calls at once |
--           calls/ms | "on" or "off"; "" clears it), actor, reason
-- RETURNS the setting that is stored now, "" for none
-- INVARIANT changes one setting and walks through nothing: who waited goes on with the next sweep. Sent twice the first
--           one stands, with its time. A lowered limit and a pause stop no running call; they only let no more in. A
--           pause that is over stays as "off", with its beginning and its end: deadlines are prolonged by it.
local EARLIER = 20 -- pauses that are remembered
local kind, value, actor, reason = ARGV[1], ARGV[3], ARGV[4], ARGV[5]
local name = kind .. ' ' .. ARGV[2]
local before = redis.call('HGET', CONTROLS, name)
if value == '' then
  redis.call('HDEL', CONTROLS, name)
  return ''
end
local was = setting_of(before)
local known = was and cjson.decode(string.sub(before, #was + 2)) or {}
if was == value and (value == 'off' or (known.by == actor and known.reason == reason)) then
  return before
elseif value == 'off' and not was then
  return ''
end
local about = { by = actor, reason = reason, at = now }
if kind == 'pause' then
  about.since = was == 'on' and known.since or now
  about.earlier = known.earlier
  if value == 'on' and was == 'off' then
    about.earlier = about.earlier or {}
    table.insert(about.earlier, { known.since, known.at })
    if #about.earlier > EARLIER then
      table.remove(about.earlier, 1)
    end
  end
end
local stored = value .. ' ' .. cjson.encode(about)
redis.call('HSET', CONTROLS, name, stored)
if kind == 'limit' then
  count_anew()
end
return stored
