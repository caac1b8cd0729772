#!lua flags=allow-oom
-- deliver: hand inbox entries to a consumer, each with the number of times that it was handed out.
-- uses: ledger memory_short
-- KEYS[1] = root of the namespace
-- ARGV    = group, consumer, mode ("new" | "again"), entry_bytes (most of one entry), step_bytes (most in this step),
--           entries (most of a tenant in this step), in_hand (most of a tenant that may be in hand), mine_ms (after
--           which an entry in this consumer's hand is handed out again), others_ms (the same of one in another's),
--           tenants[] (in the order in which they are served)
-- RETURNS {per tenant: last entry id of its empty inbox | "" where it waits or gave entries | "none" (no such inbox)
--          | "ERR ..." (it cannot be read)},
--         then per entry {place of the tenant, entry, times handed out, bytes, fields | false where it is too large}
--         | {"full"} while memory is short: nothing could be admitted, and what is not handed out is not sent about
-- INVARIANT the server counts each hand-out before anything is done with the entry, so a consumer that dies of one is
--           counted, too. An entry that some consumer did not come to an end with is handed out alone. Sent twice, it
--           hands out other entries; the first ones come again.
local group, me, mode, entry_most, step_most = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local tenant_most, hand_most, mine_ms, others_ms = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local FIRST = 10
if is_memory_short(0, redis.call('HGET', root .. 'flags', 'full')) then
  return { 'full' }
end
local states, out, left = {}, {}, step_most
out[1] = states

local function is_missing(reply)
  return type(reply) == 'table' and reply.err and string.find(reply.err, 'no such key', 1, true)
end

local function hand_out(place, entry, times)
  local size = 0
  for _, text in ipairs(entry[2] or {}) do
    size = size + #text
  end
  local fits = size <= entry_most
  left = left - (fits and size or 0)
  out[#out + 1] = { place, entry[1], times, size, fits and entry[2] }
end

local function last_id(about)
  for i = 1, #about, 2 do
    if about[i] == 'last-generated-id' then
      return about[i + 1]
    end
  end
end

-- How many entries of the inbox are in some consumer's hand; the group is made with the first entry.
local function in_hand(stream)
  local groups = redis.call('XINFO', 'GROUPS', stream)
  for _, about in ipairs(groups) do
    local got = {}
    for i = 1, #about, 2 do
      got[about[i]] = about[i + 1]
    end
    if got.name == group then
      return got.pending
    end
  end
  redis.call('XGROUP', 'CREATE', stream, group, '0')
  return 0
end

local function hand_out_new(place, stream)
  local room = math.min(tenant_most, hand_most - in_hand(stream))
  while room > 0 and left > 0 do
    local got = redis.call('XREADGROUP', 'GROUP', group, me, 'COUNT', 1, 'STREAMS', stream, '>')
    if not got then
      return
    end
    hand_out(place, got[1][2][1], 1)
    room = room - 1
  end
end

-- What was given back uncounted comes in numbers; what a consumer was left with, one in a step and nothing beside it.
local function hand_out_again(place, stream)
  in_hand(stream)
  local floor = math.min(mine_ms, others_ms)
  for _, held in ipairs(redis.call('XPENDING', stream, group, 'IDLE', floor, '-', '+', tenant_most)) do
    local after = held[2] == me and mine_ms or others_ms
    local is_suspect = held[4] > 0
    if held[3] >= after and left > 0 and not (is_suspect and #out > 1) then
      local got = redis.call('XCLAIM', stream, group, me, after, held[1])[1]
      if got then
        hand_out(place, got, held[4] + 1)
      end
      left = is_suspect and got and 0 or left
    end
  end
end

for i = FIRST, #ARGV do
  local place, stream = i - FIRST, root .. 'inbox:' .. ARGV[i]
  local length = redis.pcall('XLEN', stream)
  states[place + 1] = ''
  if type(length) == 'table' then
    states[place + 1] = 'ERR ' .. (length.err or '?')
  elseif length == 0 then
    local about = redis.pcall('XINFO', 'STREAM', stream)
    states[place + 1] = is_missing(about) and 'none' or last_id(about) or ''
  elseif left > 0 then
    (mode == 'new' and hand_out_new or hand_out_again)(place, stream)
  end
end
return out
