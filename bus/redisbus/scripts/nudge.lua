--! 
-- nudge ends a process's blocking call. The token expires, as the process may be
-- gone.
-- KEYS nudge
redis.call('LPUSH', KEYS[1], '1')
redis.call('PEXPIRE', KEYS[1], 10000)
return redis.status_reply('OK')
