-- adopt: the part of recovery that sets calls going which were held for want of a worker like the one that asks.
-- uses: ledger queue flow
-- KEYS[1] = root of the namespace
-- ARGV    = most calls of a tool to look at, then per tool: name, version served
-- RETURNS number of calls that were set going
-- INVARIANT only calls of the version served: those of others would come back at once. Publishes nothing.
local most, freed = tonumber(ARGV[1]), 0
for i = 2, #ARGV, 2 do
  for _, call in ipairs(redis.call('SRANDMEMBER', root .. 'without:' .. ARGV[i], most)) do
    if fields(call, 'version')[1] == ARGV[i + 1] then
      free(call, { op = 'free', actor = 'recovery', tool = ARGV[i] })
      freed = freed + 1
    end
  end
end
return freed
