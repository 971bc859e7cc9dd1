--! clock line
-- rewake puts back a token that reached a process in which nobody waits any more, so
-- that it wakes another process.
-- KEYS wake
-- ARGV the token
wake_one(KEYS[1], ARGV[1])
return redis.status_reply('OK')
