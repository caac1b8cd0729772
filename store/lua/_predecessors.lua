-- Prelude: which calls a new call of this submission must follow.
-- uses: submission

-- The calls of this turn that are stored, by tool; read once, and only where a tool comes after another. A turn may come
-- in several submissions, one call in each.
local stored_by_tool
local function remember(call, tool)
  local listed = stored_by_tool[tool or ''] or {}
  listed[#listed + 1] = call
  stored_by_tool[tool or ''] = listed
end
local function stored_calls_of(tool)
  if not stored_by_tool then
    stored_by_tool = {}
    for _, call in ipairs(redis.call('HKEYS', root .. 'turn:' .. turn_key)) do
      remember(call, fields(call, 'tool')[1])
    end
  end
  return stored_by_tool[tool] or {}
end

-- The calls that must succeed before this one, each once.
local function find_ahead(spec)
  local ahead, listed = {}, {}
  local function add(call)
    if not listed[call] then
      listed[call], ahead[#ahead + 1] = true, call
    end
  end
  for i = spec.pre_from, spec.pre_to do
    add(ARGV[i])
  end
  for i = spec.after_from, spec.after_to do
    for _, call in ipairs(stored_calls_of(ARGV[i])) do
      add(call)
    end
  end
  return ahead
end

-- Whoever it must follow counts down `predecessors`; one that can no longer succeed refuses it at once.
-- Returns how many are still open, or nil and the state of one that cannot succeed.
local function follow(spec)
  local open = 0
  for _, ahead in ipairs(find_ahead(spec)) do
    local state = fields(ahead, 'state')[1]
    if state ~= 'succeeded' then
      if not state or not OPEN[state] or state == 'unknown' then
        return nil, state or 'absent'
      end
      redis.call('SADD', root .. 'followers:' .. ahead, spec.call)
      open = open + 1
    end
  end
  return open
end
