-- Prelude: the arguments of `admit`, read one after the other. Its header lists them.
local request, turn_key, queue_limit = ARGV[2], ARGV[3], tonumber(ARGV[4])
local inbox, group, entry, answers = ARGV[6], ARGV[7], ARGV[8], ARGV[9]
-- When this submission came, in microseconds: a turn that comes in several has its calls in the order of these.
local came_at = clock[1] .. string.format('%06d', tonumber(clock[2]))
local tenant_limit = tonumber(ARGV[10])
local at = 10
local function take()
  at = at + 1
  return ARGV[at]
end
local function take_list()
  local size = tonumber(take())
  at = at + size
  return at - size + 1, at
end
local job_from, job_to = take_list()
-- What the records of all these calls have in common; the rest comes with each.
local shared_from, shared_to = take_list()
local shared = {}
for i = shared_from, shared_to, 2 do
  shared[ARGV[i]] = ARGV[i + 1]
end
local with_shared = { __index = shared }
