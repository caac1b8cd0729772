-- tools: the published specs, newest version of each tool, with the number that tells when they changed.
-- uses: ledger
-- KEYS[1] = root of the namespace
-- ARGV    = none
-- RETURNS {version number of the specs, then per tool its spec JSON}
-- INVARIANT reads only.
local out = { tonumber(redis.call('GET', root .. 'tools_version') or '0') }
local newest = redis.call('HGETALL', root .. 'newest')
for i = 1, #newest, 2 do
  out[#out + 1] = redis.call('HGET', root .. 'tools', newest[i] .. '\n' .. newest[i + 1])
end
return out
