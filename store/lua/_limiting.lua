-- Prelude: whether the limits, rates and pauses that are in force let a call run now.
-- uses: queue pauses (new_limits)

-- Why the limits of a call let it not run now, as `claim` answers; nil, and the limits whose slots it takes. It has been
-- parked then.
local function park_where_limited(call, got, tenant)
  local limits, taken, woken = limits_of(got.tool, tenant), {}, got.woken
  local set, rated = controls_for(limits, got.queue), 'rate:' .. limits[1]
  if set.pause then
    park_paused(call, got.queue, set.pause, set.all)
    return { 'parked', set.pause }
  end
  if set.is_new then
    new_limits().count_running()
  end
  if set.rate and not rates().may_start(rated, set.rate, woken) then
    local about = { tool = got.tool, woken = woken, rate = set.rate }
    return { 'parked', rated, rates().park_for_start(call, got.queue, rated, about, park) }
  end
  for i = 1, 2 do
    local room, limit = room_under(set[i], limits[i]), limits[i]
    if room < 1 then
      park(call, got.queue, limit)
      if woken and woken ~= limit then
        rates().pass_on(woken) -- what it was woken for is still free: the next in line gets its chance
      end
      return { 'parked', limit }
    elseif room < math.huge then
      taken[#taken + 1] = limit
    end
  end
  if set.rate then
    rates().take_start(rated, set.rate)
  end
  return nil, taken
end
