-- All times are the server's, in microseconds.
local call = redis.call

local SECOND = 1000000
local DAY = 86400 * SECOND

-- whole writes a number in full: Lua's own conversion rounds sixteen digits.
local function whole(n)
  return string.format('%.0f', n)
end

-- read_clock returns the time, and by how much it is ahead of the server's clock. The
-- time is never behind the highest number that was given, so that numbers made from
-- it only grow. It is ahead by more than a moment only if the server's clock was set
-- back.
local function read_clock(clock)
  local t = call('TIME')
  local servers = t[1] * SECOND + t[2]
  local now = math.max(servers, tonumber(call('GET', clock) or 0))
  return now, now - servers
end
