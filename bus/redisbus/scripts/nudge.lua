--! 
-- nudge breaks off a process's blocking call. The token is of no use for long.
-- KEYS nudge
redis.call('LPUSH', KEYS[1], '1')
redis.call('PEXPIRE', KEYS[1], 10000)
return redis.status_reply('OK')
