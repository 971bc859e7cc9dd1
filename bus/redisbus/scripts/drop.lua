--! 
-- drop forgets a dead letter.
-- KEYS dead graves
-- ARGV id
-- Returns how many there were.
redis.call('ZREM', KEYS[2], ARGV[1])
return redis.call('HDEL', KEYS[1], ARGV[1])
