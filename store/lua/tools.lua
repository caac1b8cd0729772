-- tools: the published specs, newest version of each tool, with the number that tells when they changed.
-- uses: ledger
-- KEYS[1] = root of the namespace
-- ARGV    = none
-- RETURNS {version number of the specs, then per tool its spec JSON}; an error where the server is a node of a cluster,
--         in which no worker starts, so that nobody looks for the missing tools elsewhere
-- INVARIANT reads only.
local out = { tonumber(redis.call('GET', root .. 'tools_version') or '0') }
local newest = redis.call('HGETALL', root .. 'newest')
for i = 1, #newest, 2 do
  out[#out + 1] = redis.call('HGET', root .. 'tools', newest[i] .. '\n' .. newest[i + 1])
end
if #out == 1 then
  local about = redis.pcall('INFO', 'cluster')
  if type(about) == 'string' and string.find(about, 'cluster_enabled:1', 1, true) then
    return redis.error_reply('CLUSTERDOWN no namespace lives in a cluster')
  end
end
return out
