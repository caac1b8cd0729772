-- Prelude: what is written of a new call: its job, and its record.
-- uses: submission

local function store_pointer(call, asked, status)
  redis.call('HSET', rq .. 'job:' .. job_of(call, asked.fp), 'origin', space .. '.' .. asked.queue, 'description', asked.tool,
    'status', status, unpack(ARGV, job_from, job_to))
end

-- The record as it is written, in one step: what the records of this submission share, what was asked for with the call,
-- and what admission adds.
local function record(spec, more)
  local out = { 'admitted_by', request, 'admitted_at', now_text, 'turn_key', turn_key,
    unpack(ARGV, shared_from, shared_to) }
  local last = #out
  for i = spec.field_from, spec.field_to do
    last = last + 1
    out[last] = ARGV[i]
  end
  for name, value in pairs(more) do
    out[last + 1], out[last + 2] = name, value
    last = last + 2
  end
  return out
end
