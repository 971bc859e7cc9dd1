--! clock line
-- unpause ends a pause and wakes one of the processes that wait for mail.
-- KEYS pause due wake
call('DEL', KEYS[1])
local first = call('ZRANGE', KEYS[2], 0, 0)
if first[1] then
  wake_one(KEYS[3], first[1])
end
return redis.status_reply('OK')
