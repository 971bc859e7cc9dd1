-- drop forgets a dead letter.
-- KEYS dead graves
-- ARGV id
-- Returns how many there were.
call('ZREM', KEYS[2], ARGV[1])
return call('HDEL', KEYS[1], ARGV[1])
