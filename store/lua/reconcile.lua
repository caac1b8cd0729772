#!lua flags=allow-oom
-- reconcile: hand out one unknown call of these tools for its reconcile; the asking itself is leased.
-- uses: ledger record_fields
-- KEYS[1] = root of the namespace
-- ARGV    = lease_ms (of the asking), tools[] (that can be reconciled)
-- RETURNS {} | {call key, fence, times asked before, fields by record.RUN_FIELDS, worker of the attempt,
--          1 where its handler is known to have ended, ms for which the call has been unknown}
-- INVARIANT no state changes here; asking twice is harmless, so the lease only spares work.
local LONGEST_WAIT_MS = 600000 -- of worker/maintenance/reconcile.py; a handler still at work waits for a lease

-- The last one, if it waits longer than anybody asked for: the clock went back.
local function find_overlong(index)
  local last = redis.call('ZREVRANGE', index, 0, 0, 'WITHSCORES')
  local waits = last[2] and tonumber(last[2]) - now or 0
  return waits > LONGEST_WAIT_MS and waits > tonumber(fields(last[1], 'lease')[1] or '0') + 1000 and last[1] or nil
end

for i = 2, #ARGV do
  local index = root .. 'reconcile:' .. ARGV[i]
  local call = redis.call('ZRANGEBYSCORE', index, '-inf', now_text, 'LIMIT', 0, 1)[1] or find_overlong(index)
  if call then
    redis.call('ZADD', index, whole(now + tonumber(ARGV[1])), call)
    local asked = redis.call('HINCRBY', record_of(call), 'asked', 1)
    local got = fields(call, 'fence', 'worker', 'left', 'changed_at')
    return { call, tonumber(got[1] or '0'), asked - 1, run_fields(whole_record(call)), got[2] or '', got[3] == got[1] and 1 or 0,
      now - tonumber(got[4] or now_text) }
  end
end
return {}
