-- lookup: what is stored about these calls; one round trip answers a whole repeated turn.
-- uses: ledger answer
-- KEYS[1] = root of the namespace
-- ARGV    = per call: call key, number of fingerprints, the fingerprints (one per configured key)
-- RETURNS {number of the published tool specs' version, then per call {"none"} | {"conflict", answer} | {"found", answer}}
-- INVARIANT reads only; takes no lock; knows nothing of today's tool specs (G4).
local out = { tonumber(redis.call('GET', root .. 'tools_version') or '0') }
local at = 1
while at <= #ARGV do
  local call, prints = ARGV[at], tonumber(ARGV[at + 1])
  local stored = redis.call('HGET', record_of(call), 'fp')
  local matches = false
  for i = at + 2, at + 1 + prints do
    matches = matches or ARGV[i] == stored
  end
  at = at + 2 + prints
  if not stored then
    out[#out + 1] = { 'none' }
  else
    out[#out + 1] = { matches and 'found' or 'conflict', answer(call) }
  end
end
return out
