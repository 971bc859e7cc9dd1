--! clock
-- hold takes a name for a while, if it is free.
-- KEYS clock hold
-- ARGV milliseconds
-- Returns the fence under which the name is now held, or 0 and for how many more
-- milliseconds another process holds it.
local left = call('PTTL', KEYS[2])
if left >= 0 then
  return {'0', left}
end
call('PERSIST', KEYS[2]) -- a first write that a full server takes (see note_contact)
local fence = whole(read_clock(KEYS[1]) + 1)
call('SET', KEYS[1], fence)
call('SET', KEYS[2], fence, 'PX', ARGV[1])
return {fence, 0}
