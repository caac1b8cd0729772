-- adopt: the part of recovery that sets calls going which were held for want of a worker like the one that asks.
-- uses: ledger queue flow
-- KEYS[1] = root of the namespace
-- ARGV    = most calls of a tool to look at, then per tool: name, version served, number of other versions accepted,
--           these versions ("*": all)
-- RETURNS number of calls that were set going
-- INVARIANT calls of another version than the one served may not fit its schema, and then come back at once: each is
--           tried a bounded number of times. Publishes nothing.
local TRIES = 20 -- a worker without the tool may take it again before the one that asks does
local most, freed = tonumber(ARGV[1]), 0

local function adopt(tool, served, accepted)
  for _, call in ipairs(redis.call('SRANDMEMBER', root .. 'without:' .. tool, most)) do
    local got = fields(call, 'version', 'adopted')
    local is_ours = got[1] == served
    if not is_ours and (accepted['*'] or accepted[got[1]]) and tonumber(got[2] or '0') < TRIES then
      is_ours = true
      redis.call('HINCRBY', record_of(call), 'adopted', 1)
    end
    if is_ours then
      free(call, { op = 'free', actor = 'recovery', tool = tool })
      freed = freed + 1
    end
  end
end

local at = 2
while at <= #ARGV do
  local accepted, others = {}, tonumber(ARGV[at + 2])
  for i = at + 3, at + 2 + others do
    accepted[ARGV[i]] = true
  end
  adopt(ARGV[at], ARGV[at + 1], accepted)
  at = at + 3 + others
end
return freed
