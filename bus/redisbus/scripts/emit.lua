--! clock listeners
-- emit numbers events, stores those of sessions and of the server for a while, and publishes each on the
-- channels on which somebody listens.
-- KEYS clock, then streams
-- ARGV how many milliseconds a stream is kept after its last event, about how many
-- events it keeps, the number of channels, the channels, then per event: which of the streams
-- it goes to (0: none), to which two of the channels (likewise), and the event
local id = read_clock(KEYS[1])
local channels = {}
for i = 1, tonumber(ARGV[3]) do
  channels[i] = ARGV[i + 3]
end
local listened = find_listeners(channels)
for i = #channels + 4, #ARGV, 4 do
  id = id + 1
  local number, event = whole(id), ARGV[i + 3]
  local stream = KEYS[ARGV[i] + 1]
  if ARGV[i] ~= '0' then
    call('XADD', stream, 'MAXLEN', '~', ARGV[2], number .. '-0', 'e', event)
  end
  for c = i + 1, i + 2 do
    local channel = tonumber(ARGV[c])
    if listened[channel] then
      call('PUBLISH', channels[channel], number .. ' ' .. event)
    end
  end
end
for k = 2, #KEYS do
  call('PEXPIRE', KEYS[k], ARGV[1])
end
call('SET', KEYS[1], whole(id))
return redis.status_reply('OK')
