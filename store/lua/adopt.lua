#!lua flags=allow-oom
-- adopt: the part of recovery that queues calls which were held until a worker like the one that asks is there.
-- uses: ledger queue flow
-- KEYS[1] = root of the namespace
-- ARGV    = most (calls of a tool to look at), #queues, queues[] (that are served), #keys, keys[] (at hand, by id),
--           served[tool, version, #others, others[] (other versions accepted, "*": all)]
-- RETURNS number of calls that were queued
-- INVARIANT calls of another version than the one served may not fit its schema, and then come back at once: each is
--           tried a bounded number of times. Calls that the worker could not take, or could not open, stay held.
--           Publishes nothing.
local TRIES = 20 -- a worker without the tool may take it again before the one that asks does
local most, freed, at = tonumber(ARGV[1]), 0, 2

local function next_set()
  local members, last = {}, at + tonumber(ARGV[at])
  for i = at + 1, last do
    members[ARGV[i]] = true
  end
  at = last + 1
  return members
end

local queues, keys = next_set(), next_set()

local function is_in_reach(call)
  local got = fields(call, 'queue', 'secret', 'kid')
  return queues[got[1]] and (got[2] ~= '1' or keys[got[3]])
end

local function adopt(tool, served, accepted)
  for _, call in ipairs(redis.call('SRANDMEMBER', root .. 'no_worker:' .. tool, most)) do
    local got = fields(call, 'version', 'adopted')
    local is_ours, can_run = got[1] == served, is_in_reach(call)
    if can_run and not is_ours and (accepted['*'] or accepted[got[1]]) and tonumber(got[2] or '0') < TRIES then
      is_ours = true
      redis.call('HINCRBY', record_of(call), 'adopted', 1)
    end
    if can_run and is_ours then
      free(call, { op = 'free', actor = 'recovery', tool = tool })
      freed = freed + 1
    end
  end
end

while at <= #ARGV do
  local tool, served = ARGV[at], ARGV[at + 1]
  at = at + 2
  adopt(tool, served, next_set())
end
return freed
