--! listeners
-- release frees a name, if it is held under that fence, and tells the processes that wait
-- for it.
-- KEYS hold waiting
-- ARGV fence, start of the channel names of notes, name, the channel on which processes of
-- older releases hear of all names
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('DEL', KEYS[1])
  for _, process in ipairs(redis.call('SMEMBERS', KEYS[2])) do
    redis.call('PUBLISH', ARGV[2] .. process, 'free ' .. ARGV[3])
  end
  redis.call('DEL', KEYS[2])
  if find_listeners({ARGV[4]})[1] then
    redis.call('PUBLISH', ARGV[4], ARGV[3])
  end
end
return redis.status_reply('OK')
