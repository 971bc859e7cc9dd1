--!
-- raise_clock raises the clock to a number, so that all numbers that are given from now on are above it.
-- KEYS clock
-- ARGV number
if tonumber(redis.call('GET', KEYS[1]) or 0) < tonumber(ARGV[1]) then
  redis.call('SET', KEYS[1], ARGV[1])
end
return redis.status_reply('OK')
