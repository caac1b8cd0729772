#!lua flags=allow-oom
-- control: set or clear what a person says about which calls may run now. It wins over the code's word.
-- uses: ledger controls
-- KEYS[1] = root of the namespace
-- ARGV    = kind ("limit"), target (tool:<name> | tenant:<name> | tenant:*: every tenant without one of its own), value
--           ("" clears it), actor, reason
-- RETURNS the setting that is stored now, "" for none
-- INVARIANT changes one setting and walks through nothing: who waited goes on with the next sweep. Sent twice the first
--           one stands, with its time. A lowered limit stops no running call; it only lets no more in.
local name, value = ARGV[1] .. ' ' .. ARGV[2], ARGV[3]
local about = { by = ARGV[4], reason = ARGV[5], at = now }
local before = redis.call('HGET', CONTROLS, name)
if value == '' then
  redis.call('HDEL', CONTROLS, name)
  return ''
elseif before and setting_of(before) == value then
  local known = cjson.decode(string.sub(before, #value + 2))
  if known.by == about.by and known.reason == about.reason then
    return before
  end
end
local stored = value .. ' ' .. cjson.encode(about)
redis.call('HSET', CONTROLS, name, stored)
if ARGV[1] == 'limit' then
  count_anew()
end
return stored
