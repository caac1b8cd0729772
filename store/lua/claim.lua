#!lua flags=allow-oom
-- claim: take the right to run one call, for a lease, under a new fence; or learn why not.
-- uses: ledger leaving record_fields (flow) claiming
-- KEYS[1] = root of the namespace
-- ARGV    = job_id, queue (it came from), token (of the delivery), worker, lease_ms, seen_fence (the highest
--           before), bar_mutating (1 where too few replicas answer for a mutating call to be run)
-- RETURNS {"run", fence, fields by record.RUN_FIELDS} | {"settled", state} | {"busy", ms left of the lease}
--         | {"held", reason} | {"parked", limit, "replicas", "later" or "pause <target>"}
--         | {"parked", rate, ms until the next call may start or -1} | {"unknown"} | {"gone"}
-- INVARIANT a call is running under one fence only; a delivery that comes again under its token gets its own claim
--           again, and nothing is counted twice. A claim that is answered has written, also when it comes again: a WAIT
--           behind it, on whatever connection, waits for this write.
redis.call('LREM', queue_key(ARGV[2]) .. ':intermediate', 1, ARGV[1])
return take_run(ARGV[1], { token = ARGV[3], worker = ARGV[4], lease = tonumber(ARGV[5]), seen = tonumber(ARGV[6]),
  bars_mutating = ARGV[7] == '1', went_back = redis.call('HGET', root .. 'flags', 'went_back') })
