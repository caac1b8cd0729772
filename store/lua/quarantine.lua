#!lua flags=allow-oom
-- quarantine: put an inbox entry aside, with the reason, so that it blocks nobody.
-- uses: ledger
-- KEYS[1] = root of the namespace
-- ARGV    = stream (the inbox), group, entry, reason, answers (stream), most_fields (of the entry to keep), most_bytes
--           (the same)
-- RETURNS 1 put aside now | 0 before
-- INVARIANT put aside and acknowledged in one step; the harness is told on its answer stream. Of a large entry only the
--           beginning is kept: what is put aside must not fill the store.
local stream, group, entry, reason, answers = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
if redis.call('XACK', stream, group, entry) == 0 then
  return 0
end
local found = redis.call('XRANGE', stream, entry, entry)[1]
local given, kept, bytes, room = found and found[2] or {}, {}, 0, tonumber(ARGV[7])
for i = 1, #given, 2 do
  local name, value = given[i], given[i + 1]
  bytes = bytes + #name + #value
  if i < 2 * tonumber(ARGV[6]) and room > #name then
    kept[#kept + 1], kept[#kept + 2] = name, string.sub(value, 1, room - #name)
    room = room - #name - #kept[#kept]
  end
end
redis.call('XADD', root .. 'quarantine', 'MAXLEN', '~', '10000', '*', 'inbox', stream, 'entry', entry, 'reason', reason,
  'bytes', whole(bytes), unpack(kept))
redis.call('XADD', answers, '*', 'state', 'quarantined', 'error', cjson.encode({ code = 'quarantined', message = reason }))
redis.call('EXPIRE', answers, 86400)
redis.call('XDEL', stream, entry)
return 1
