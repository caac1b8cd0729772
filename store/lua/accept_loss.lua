#!lua flags=allow-oom
-- accept_loss: an operator has looked at what a step back of the store lost; mutating calls may be claimed again.
-- uses: ledger queue flow
-- KEYS[1] = root of the namespace
-- ARGV    = actor, reason, most (calls to free in this step)
-- RETURNS {1 where the flag stood and is now taken down, else 0, number freed, number still held}
-- INVARIANT repeat until none is held; the flag falls with the first step, so that freed calls are not held again.
local stood = redis.call('HDEL', root .. 'flags', 'went_back', 'went_back_from', 'went_back_to', 'went_back_because')
if stood > 0 then
  redis.call('HSET', root .. 'flags', 'loss_accepted_by', ARGV[1], 'loss_accepted_because', ARGV[2], 'loss_accepted_at', now_text)
  -- What processes still have to say of attempts up to now is what was accepted.
  redis.call('HSET', root .. 'marks', 'accepted_fence', redis.call('GET', root .. 'fence') or '0')
end
local freed = 0
for _, call in ipairs(redis.call('SRANDMEMBER', root .. 'held_back', tonumber(ARGV[3]))) do
  free(call, { op = 'free', actor = ARGV[1], tool = fields(call, 'tool')[1], reason = ARGV[2] })
  freed = freed + 1
end
return { stood > 0 and 1 or 0, freed, redis.call('SCARD', root .. 'held_back') }
