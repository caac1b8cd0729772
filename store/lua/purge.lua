#!lua flags=allow-oom
-- purge: forget the bodies of these calls now, whatever their age, by an operator's decision.
-- uses: ledger forget
-- KEYS[1] = root of the namespace
-- ARGV    = calls[]
-- RETURNS per call "forgotten" | "open" (it is not settled: nothing done) | "gone"
-- INVARIANT a tombstone stays until its retention ends: a purged call never runs again; counters do not change.
local out = {}
for i, call in ipairs(ARGV) do
  local got = fields(call, 'state', 'forgotten')
  if not got[1] then
    out[i] = 'gone'
  elseif OPEN[got[1]] then
    out[i] = 'open'
  else
    if not got[2] then
      forget_body(call, got[1])
    end
    out[i] = 'forgotten'
  end
end
return out
