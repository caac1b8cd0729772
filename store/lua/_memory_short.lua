-- Prelude: whether there is no room for new calls.
-- uses: (memory)
local LOOK_AT_ONCE_BYTES = 65536

-- The server is asked now and then, before much is taken in, and by whoever admits: also where no worker lives. `bytes` of
-- arguments are to come; `was_short`: what the flag says.
local function is_memory_short(bytes, was_short)
  if bytes < LOOK_AT_ONCE_BYTES and tonumber(redis.call('GET', root .. 'memory_looked_at') or '0') > now then
    return was_short
  end
  return memory().look_at_memory(bytes, was_short)
end
