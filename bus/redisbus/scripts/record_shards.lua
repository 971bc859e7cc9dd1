--!
-- record_shards records the number of the bus's shards, unless another process has just changed that.
-- KEYS shards
-- ARGV the number so far ('' for none), the new number ('' for none)
-- Returns 1, or 0 if the number so far is another.
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then
  return 0
end
if ARGV[2] == '' then
  redis.call('DEL', KEYS[1])
else
  redis.call('SET', KEYS[1], ARGV[2])
end
return 1
