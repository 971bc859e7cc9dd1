-- find_listeners returns for each channel whether anybody listens to it. Nobody can begin to listen while
-- a script runs, so nobody misses what is then not published. All processes listen on the server where
-- the scripts run; listeners elsewhere are not counted.
local function find_listeners(channels)
  local counts = redis.pcall('PUBSUB', 'NUMSUB', unpack(channels))
  local listened = {}
  for i = 1, #channels do
    -- If the server refuses to tell, everything is published.
    listened[i] = counts.err ~= nil or tonumber(counts[2 * i]) > 0
  end
  return listened
end
