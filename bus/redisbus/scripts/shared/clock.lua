-- All times are the server's, in microseconds.
local call = redis.call

local SECOND = 1000000
local DAY = 86400 * SECOND

-- Lua would round numbers of sixteen digits where it makes strings of them.
local function whole(n)
  return string.format('%.0f', n)
end

-- The time, which is never behind the highest number that was given out.
local function read_clock(clock)
  local t = call('TIME')
  return math.max(t[1] * SECOND + t[2], tonumber(call('GET', clock) or 0))
end
