-- Prelude: whom a held call waits for. Reads only.
-- The one that it follows by a unique key; else the call that stands first in one of its lanes, one in doubt before
-- others; or the one that it may repeat. Returns its call key and state, or false and false.
local function ahead_of(call, lanes, duplicate_of, follows)
  if follows then
    return follows, fields(follows, 'state')[1]
  end
  local found, state = false, false
  for lane in string.gmatch(lanes or '', '[^\n]+') do
    local first = redis.call('ZRANGE', root .. 'lane:' .. lane, 0, 0)[1]
    if first and first ~= call and state ~= 'unknown' then
      found, state = first, fields(first, 'state')[1]
    end
  end
  if not found and duplicate_of then
    found, state = duplicate_of, fields(duplicate_of, 'state')[1]
  end
  return found, state
end
