#!lua flags=allow-oom
-- high_water: compare the highest fence that a process has seen with what the server knows; a lower one is flagged.
-- uses: ledger fence
-- KEYS[1] = root of the namespace
-- ARGV    = highest fence seen
-- RETURNS the highest fence of the two
-- INVARIANT the fence never falls again.
return highest_fence(tonumber(ARGV[1]))
