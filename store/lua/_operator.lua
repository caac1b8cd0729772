-- Prelude: an operator's decision. It applies to the (state, fence) that the operator saw, and once per request id.
local REQUEST_KEPT_S = 86400

-- A request id counts for one operation on one call: the same id elsewhere is another request.
local function request_key(op, call, request)
  return root .. 'request:' .. op .. ':' .. call .. ':' .. request
end

local function answered(op, call, request)
  local line = request ~= '' and redis.call('GET', request_key(op, call, request))
  return line and cjson.decode(line) or nil
end

local function reply(op, call, request, ...)
  local out = { ... }
  if request ~= '' then
    redis.call('SET', request_key(op, call, request), cjson.encode(out), 'EX', REQUEST_KEPT_S)
  end
  return out
end

-- nil where state and fence are still those that the operator saw, else what they are now.
local function differs(call, state, fence)
  local got = fields(call, 'state', 'fence')
  if (tonumber(fence) or 0) > 0 then
    compare_record(call, got[1], tonumber(got[2] or '0'), tonumber(fence)) -- or the store has lost what they saw
  end
  if not got[1] then
    return { 'gone' }
  elseif got[1] ~= state or (fence ~= '' and (got[2] or '0') ~= fence) then
    return { 'changed', got[1], got[2] or '0' }
  end
end
