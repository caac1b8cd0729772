-- Prelude: what is told about one call, in the order of answers.ANSWER_FIELDS.
local function answer(call)
  return fields(call, 'state', 'tool', 'call_id', 'position', 'kind', 'ikey', 'attempt', 'fence', 'reason',
    'result', 'error', 'marks', 'echo', 'cancel_requested', 'forgotten', 'turn', 'progress', 'progress_message',
    'argument_errors', 'duplicate_of', 'may_have_run')
end
