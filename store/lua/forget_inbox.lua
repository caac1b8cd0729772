#!lua flags=allow-oom
-- forget_inbox: take tenants off the list of those whose inbox is read, where there is nothing to read.
-- uses: ledger
-- KEYS[1] = root of the namespace
-- ARGV    = kept_ms (for which an empty inbox is kept after its last entry), tenants[]
-- RETURNS number of tenants taken off
-- INVARIANT an inbox that holds an entry stays listed: a harness lists its tenant after each entry that it adds.
local gone = 0
for i = 2, #ARGV do
  local stream = root .. 'inbox:' .. ARGV[i]
  local length = redis.pcall('XLEN', stream)
  local is_over = length == 0 and redis.call('EXISTS', stream) == 0
  if length == 0 and not is_over then
    local about = redis.call('XINFO', 'STREAM', stream)
    for at = 1, #about, 2 do
      if about[at] == 'last-generated-id' then
        is_over = tonumber(string.match(about[at + 1], '^%d+')) < now - tonumber(ARGV[1])
      end
    end
  end
  if is_over then
    redis.call('DEL', stream)
    gone = gone + redis.call('SREM', root .. 'inboxes', ARGV[i])
  end
end
return gone
