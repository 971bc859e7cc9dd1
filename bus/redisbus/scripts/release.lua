--! 
-- release frees a name, if it is held under that fence, and tells all processes.
-- KEYS hold
-- ARGV fence channel name
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('DEL', KEYS[1])
  redis.call('PUBLISH', ARGV[2], ARGV[3])
end
return redis.status_reply('OK')
