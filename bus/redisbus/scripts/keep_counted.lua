--! clock contact
-- keep_counted keeps leases counted that work for groups. One that is not counted anymore is left alone.
-- KEYS clock contact, then per lease: counted
-- ARGV the lease time, for how long they count, then per lease what names it
local now = note_contact(KEYS[2], KEYS[1], tonumber(ARGV[1]))
for i = 3, #KEYS do
  call('ZADD', KEYS[i], 'XX', whole(now + tonumber(ARGV[2])), ARGV[i])
end
return redis.status_reply('OK')
