--! clock line
-- rewake puts back a token that was taken by somebody who has no use for it.
-- KEYS wake
-- ARGV the token
wake_one(KEYS[1], ARGV[1])
return redis.status_reply('OK')
