-- journal: one entry of a conversation's journal; the first that comes for a number stands.
-- uses: ledger
-- KEYS[1] = root of the namespace
-- ARGV    = scope, number (of the entry), entry ("" to read all), kept_s (since the last entry)
-- RETURNS the entry that stands under the number | all entries as number, entry, ...
-- INVARIANT an entry is never replaced, so two harnesses of one conversation go on with the same turns.
local journal = root .. 'journal:' .. ARGV[1]
if ARGV[3] == '' then
  return redis.call('HGETALL', journal)
end
redis.call('HSETNX', journal, ARGV[2], ARGV[3])
redis.call('EXPIRE', journal, tonumber(ARGV[4]))
return redis.call('HGET', journal, ARGV[2])
