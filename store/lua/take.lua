#!lua flags=allow-oom
-- take: the next pointer of a queue, for a worker, where Redis is over its memory limit and refuses BLMOVE.
-- uses: ledger memory queue
-- KEYS[1] = root of the namespace
-- ARGV    = queue, share (of the limit by which it may be passed), least_bytes (by which it may be passed at least)
-- RETURNS the pointer, now in the intermediate list | "" where the queue is empty | "full" where it is passed by more
-- INVARIANT what LMOVE does. A pointer whose reply was lost stays in the intermediate list; recovery pushes its call again.
local used, allowed = read_memory()
if allowed > 0 and used - allowed > math.max(allowed * tonumber(ARGV[2]), tonumber(ARGV[3])) then
  return 'full'
end
local list = queue_key(ARGV[1])
return redis.call('LMOVE', list, list .. ':intermediate', 'LEFT', 'RIGHT') or ''
