--! clock
-- emit numbers events, keeps those of sessions for a while, and publishes them.
-- KEYS clock, then streams
-- ARGV how many milliseconds a stream is kept after its last event, about how many
-- events it keeps, then per event: which of the streams it goes to (0: none), the two
-- channels to publish it to (either may be empty), and the event
local id = read_clock(KEYS[1])
for i = 3, #ARGV, 4 do
  id = id + 1
  local number, event = whole(id), ARGV[i + 3]
  local stream = KEYS[ARGV[i] + 1]
  if ARGV[i] ~= '0' then
    call('XADD', stream, 'MAXLEN', '~', ARGV[2], number .. '-0', 'e', event)
  end
  for c = i + 1, i + 2 do
    if ARGV[c] ~= '' then
      call('PUBLISH', ARGV[c], number .. ' ' .. event)
    end
  end
end
for k = 2, #KEYS do
  call('PEXPIRE', KEYS[k], ARGV[1])
end
call('SET', KEYS[1], whole(id))
return redis.status_reply('OK')
