--! 
-- nudge ends a process's blocking call. The token expires, because nobody would remove
-- it if the process has ended.
-- KEYS nudge
redis.call('LPUSH', KEYS[1], '1')
redis.call('PEXPIRE', KEYS[1], 10000)
return redis.status_reply('OK')
