-- Prelude: what a worker needs to know to run a call, in the order of execution.RUN_FIELDS; then what else is asked.
local RUN_FIELDS = 23

local function run_fields(call, ...)
  return fields(call, 'tool', 'version', 'kind', 'args', 'ikey', 'scope', 'tenant', 'turn', 'call_id', 'position',
    'effect', 'begins', 'attempt', 'attempt_limit', 'deadline_at', 'secret', 'cancel_requested', 'trace',
    'claimed_at', 'approved', 'kid', 'ran_before', 'not_started', ...)
end
