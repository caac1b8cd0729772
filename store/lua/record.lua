-- record: all that is stored about one call: record, history, evidence, lease.
-- uses: ledger ahead
-- KEYS[1] = root of the namespace
-- ARGV    = call
-- RETURNS {record as field, value, ... (empty: no such call), history lines, evidence lines, ms left of the lease or -1, now,
--          key and state of the call that a held one waits for}
-- INVARIANT reads only.
local call = ARGV[1]
local got = fields(call, 'state', 'lanes', 'duplicate_of', 'follows')
local ahead, ahead_state = false, false
if got[1] == 'held' then
  ahead, ahead_state = ahead_of(call, got[2], got[3], got[4])
end
local lease = redis.call('ZSCORE', root .. 'leases', call)
return {
  redis.call('HGETALL', record_of(call)),
  redis.call('LRANGE', root .. 'history:' .. call, 0, -1),
  redis.call('LRANGE', root .. 'evidence:' .. call, 0, -1),
  lease and tonumber(lease) - now or -1,
  now,
  ahead,
  ahead_state,
}
