#!lua flags=allow-oom
-- replicas: keep the largest number of replicas that was ever seen. Asked with 0 it is a barrier: a write, and nothing new.
-- uses: ledger
-- KEYS[1] = root of the namespace
-- ARGV    = seen (number of replicas now)
-- RETURNS the largest number ever seen
-- INVARIANT the number never falls by itself. Each run writes, so that a WAIT behind it, on whatever connection, says how
--           many replicas have everything that was written before.
local most = math.max(tonumber(redis.call('GET', root .. 'replicas') or '0'), tonumber(ARGV[1]))
redis.call('SET', root .. 'replicas', whole(most))
return most
