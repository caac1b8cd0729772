-- Prelude: the arguments of `admit`, read one after the other. Its header lists them.
local request, turn_key, queue_limit = ARGV[2], ARGV[3], tonumber(ARGV[4])
local inbox, group, entry, answers = ARGV[6], ARGV[7], ARGV[8], ARGV[9]
-- When this submission came, in microseconds: a turn that comes in several has its calls in the order of these.
local came_at = clock[1] .. string.format('%06d', tonumber(clock[2]))
local tenant_limit = tonumber(ARGV[10])
local read_to = 10
local function take()
  read_to = read_to + 1
  return ARGV[read_to]
end
local function take_list()
  local size = tonumber(take())
  read_to = read_to + size
  return read_to - size + 1, read_to
end
local job_from, job_to = take_list()
-- What the records of all these calls have in common; the rest comes with each.
local shared_from, shared_to = take_list()
local shared = {}
for i = shared_from, shared_to, 2 do
  shared[ARGV[i]] = ARGV[i + 1]
end
local with_shared = { __index = shared }

-- The next call of the submission. What it has of its own stands in `asked`, with what all have in common.
local function read_call()
  local call, state, reason, approval = take(), take(), take(), take()
  local fp_from, fp_to = take_list()
  local unique_from, unique_to = take_list()
  local pre_from, pre_to = take_list()
  local after_from, after_to = take_list()
  local field_from, field_to = take_list()
  local asked = setmetatable({}, with_shared)
  for i = field_from, field_to, 2 do
    asked[ARGV[i]] = ARGV[i + 1]
  end
  return { call = call, state = state, reason = reason, approval = tonumber(approval), asked = asked,
    fp_from = fp_from, fp_to = fp_to, unique_from = unique_from, unique_to = unique_to, pre_from = pre_from,
    pre_to = pre_to, after_from = after_from, after_to = after_to, field_from = field_from, field_to = field_to,
    is_new = false, looks_back = after_to >= after_from,
    has_relations = unique_to >= unique_from or pre_to >= pre_from or after_to >= after_from }
end
