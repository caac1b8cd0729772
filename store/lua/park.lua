-- park: put an inbox entry that cannot be read aside, with the reason, so that it blocks nobody.
-- uses: ledger
-- KEYS[1] = root of the namespace
-- ARGV    = inbox stream, group, entry, reason, answer stream, the entry's fields as field, value, ...
-- RETURNS 1 parked now | 0 parked before
-- INVARIANT parked and acknowledged in one step; the harness is told on its answer stream.
if redis.call('XACK', ARGV[1], ARGV[2], ARGV[3]) == 0 then
  return 0
end
redis.call('XADD', root .. 'parked', 'MAXLEN', '~', '10000', '*', 'inbox', ARGV[1], 'entry', ARGV[3], 'reason', ARGV[4],
  unpack(ARGV, 6))
redis.call('XADD', ARGV[5], '*', 'state', 'parked', 'error', cjson.encode({ code = 'parked', message = ARGV[4] }))
redis.call('EXPIRE', ARGV[5], 86400)
redis.call('XDEL', ARGV[1], ARGV[3])
return 1
