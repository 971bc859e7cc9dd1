--! clock
-- hold takes a name for a while, if it is free. Otherwise it notes that the process waits for it.
-- KEYS clock hold waiting
-- waiting is a set of the processes that wait for the name.
-- ARGV milliseconds, the process, for how many milliseconds waiting is kept
-- Returns the fence under which the name is now held, or 0 and for how many more
-- milliseconds another process holds it.
local left = call('PTTL', KEYS[2])
if left >= 0 then
  -- A server that takes no writes cannot note it; the process asks again by itself.
  redis.pcall('SADD', KEYS[3], ARGV[2])
  redis.pcall('PEXPIRE', KEYS[3], ARGV[3])
  return {'0', left}
end
call('PERSIST', KEYS[2]) -- a first write that a full server takes (see note_contact)
local fence = whole(read_clock(KEYS[1]) + 1)
call('SET', KEYS[1], fence)
call('SET', KEYS[2], fence, 'PX', ARGV[1])
return {fence, 0}
