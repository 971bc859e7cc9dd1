-- All times are the server's, in microseconds.
local call = redis.call

local SECOND = 1000000
local DAY = 86400 * SECOND

-- Lua would round numbers of sixteen digits where it makes strings of them.
local function whole(n)
  return string.format('%.0f', n)
end

-- The time, which is never behind the highest number that was given out, and by
-- how much it is ahead of the server's: by more than a moment once that was set back.
local function read_clock(clock)
  local t = call('TIME')
  local servers = t[1] * SECOND + t[2]
  local now = math.max(servers, tonumber(call('GET', clock) or 0))
  return now, now - servers
end
