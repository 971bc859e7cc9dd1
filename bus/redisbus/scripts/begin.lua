--! clock
-- begin notes that another bus is taken in under an id, and moves the clock above
-- the numbers that it gave.
-- KEYS moved clock
-- ARGV id highest
-- Returns the id under which it was begun, this time or before.
call('HSETNX', KEYS[1], 'id', ARGV[1])
if tonumber(call('GET', KEYS[2]) or 0) < tonumber(ARGV[2]) then
  call('SET', KEYS[2], ARGV[2])
end
return call('HGET', KEYS[1], 'id')
