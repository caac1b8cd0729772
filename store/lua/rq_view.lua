-- rq_view: show RQ's tools what one worker runs, and the newest calls whose runs it has ended; once a heartbeat.
-- uses: ledger at_rest
-- KEYS[1] = root of the namespace
-- ARGV    = worker, #unlisted, unlisted[] (jobs of calls that it has settled: they are too many to be shown), runs[job,
--           queue, token, how ("running" | "settled" | "over")]
-- RETURNS how many of them were shown
-- INVARIANT what is shown was true of the record in this very step. A job that RQ has forgotten is not written again in
--           part, and the job of a call that is queued again stays.
local worker, at = ARGV[1], 3 + tonumber(ARGV[2])
local shown = 0

local function is_at_rest(state)
  return state and (not OPEN[state] or state == 'unknown')
end

local jobs = {}
for i = 3, at - 1 do
  if is_at_rest(fields(string.sub(ARGV[i], 1, 32), 'state')[1]) then
    jobs[#jobs + 1] = rq .. 'job:' .. ARGV[i]
  end
end
if jobs[1] then
  redis.call('DEL', unpack(jobs))
end
while at < #ARGV do
  local job, queue, token, how = unpack(ARGV, at, at + 3)
  local got = fields(string.sub(job, 1, 32), 'state', 'token')
  local wip, is_current = rq .. 'wip:' .. space .. '.' .. queue, got[2] == token
  at = at + 4
  if how == 'running' and is_current and got[1] == 'running' then
    redis.call('ZADD', wip, '+inf', job .. ':' .. token)
    redis.call('HSET', rq .. 'job:' .. job, 'status', 'started', 'worker_name', worker)
    shown = shown + 1
  else
    redis.call('ZREM', wip, job .. ':' .. token)
  end
  if how == 'settled' and is_current and is_at_rest(got[1]) then
    show_at_rest(job, queue, got[1])
    shown = shown + 1
  end
end
return shown
