--! clock
-- hold takes a name, if it is free, for a while.
-- KEYS clock hold
-- ARGV milliseconds
-- Returns the fence under which it is held, or 0, and the milliseconds for which another has it.
local left = call('PTTL', KEYS[2])
if left >= 0 then
  return {'0', left}
end
call('PERSIST', KEYS[2]) -- a first write that a full server takes (see note_contact)
local fence = whole(read_clock(KEYS[1]) + 1)
call('SET', KEYS[1], fence)
call('SET', KEYS[2], fence, 'PX', ARGV[1])
return {fence, 0}
