-- Prelude: what people and the code say about which calls may run now. One hash, one field per setting: "<kind> <target>"
-- of people, which wins, and "code <kind> <target>".
local CONTROLS = root .. 'controls'

-- The value of a setting: what people have set is followed by who has set it, when and why.
local function setting_of(stored)
  return stored and string.match(stored, '^%S+')
end

-- Calls that run already count under a limit that is new; the next claim under any limit counts them.
local function count_anew()
  redis.call('HSET', CONTROLS, 'uncounted', 1)
end
