#!lua flags=allow-oom
-- fence_watermark: compare what a process has seen with what the server knows: the highest fence, and what it was told of
-- single calls. A server that knows less has lost writes, and is flagged.
-- uses: ledger fence
-- KEYS[1] = root of the namespace
-- ARGV    = seen_fence (the highest), known[call, state (told), fence (told)] (calls that are known otherwise)
-- RETURNS the highest fence of the two
-- INVARIANT the fence never falls again.
local FINAL = { succeeded = true, refused = true, cancelled = true, expired = true } -- nothing leads out of these
for i = 2, #ARGV, 3 do
  local got = fields(ARGV[i], 'state', 'fence')
  local held, stored = tonumber(ARGV[i + 2]), tonumber(got[2] or '0')
  local is_undone = got[1] and FINAL[ARGV[i + 1]] and got[1] ~= ARGV[i + 1]
  compare_record(ARGV[i], got[1], is_undone and math.min(stored, held - 1) or stored, held)
end
return highest_fence(tonumber(ARGV[1]))
