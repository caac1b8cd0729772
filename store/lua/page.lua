-- page: one page of the calls in a state, newest or oldest first; never a scan of the store.
-- uses: ledger record_fields ahead running
-- KEYS[1] = root of the namespace
-- ARGV    = state, order ("new" | "old" first), after (entered the state then or later: ms with decimals, or "-inf"),
--           before (the same, or "+inf"), offset, most
-- RETURNS {now, total in the range, then per call {call key, entered in microseconds, fields by record.PAGE_FIELDS,
--          key and state of the call that a held one waits for}}
-- INVARIANT reads only; looks at no more calls than asked for, and than run.
local state, is_oldest_first, after, before, offset, most =
  ARGV[1], ARGV[2] == 'old', ARGV[3], ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
local index = root .. 'in:' .. state

-- As a range of an index.
local function page_of_running()
  local all = running_calls(tonumber(after) or -math.huge, tonumber(before) or math.huge)
  local total, page = #all / 2, {}
  for i = offset + 1, math.min(total, offset + most) do
    local place = is_oldest_first and i or total + 1 - i
    page[#page + 1], page[#page + 2] = all[2 * place - 1], all[2 * place]
  end
  return page, total
end

local range, total
if state == 'running' then
  range, total = page_of_running()
elseif is_oldest_first then
  range = redis.call('ZRANGEBYSCORE', index, after, before, 'WITHSCORES', 'LIMIT', offset, most)
else
  range = redis.call('ZREVRANGEBYSCORE', index, before, after, 'WITHSCORES', 'LIMIT', offset, most)
end
local out = { now, total or redis.call('ZCOUNT', index, after, before) }
for i = 1, #range, 2 do
  local entered = math.floor(tonumber(range[i + 1]) * 1000 + 0.5)
  local got = page_fields(range[i])
  local ahead, ahead_state = false, false
  if state == 'held' then
    local about = fields(range[i], 'lanes', 'duplicate_of', 'follows')
    ahead, ahead_state = ahead_of(range[i], about[1], about[2], about[3])
  end
  out[#out + 1] = { range[i], entered, got, ahead, ahead_state }
end
return out
