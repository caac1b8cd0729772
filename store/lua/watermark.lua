#!lua flags=allow-oom
-- watermark: raise or lower the flag that stops admission, by how much memory the server uses.
-- uses: ledger memory
-- KEYS[1] = root of the namespace
-- ARGV    = used (bytes), allowed (bytes, 0: no limit), stop (raise at this many per mille), resume (lower below this
--           many)
-- RETURNS 1 where the flag stands now, else 0
-- INVARIANT what open calls will still write counts as used; between the two marks the flag stays as it is; it stops
--           new calls and nothing else.
return mark_memory(tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])) and 1 or 0
