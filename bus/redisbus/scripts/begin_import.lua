--! clock
-- begin_import stores the id of an import, unless one has begun before, and raises
-- the clock above the numbers that the other bus gave.
-- KEYS moved clock
-- ARGV id highest
-- Returns the id of the import that has begun, this one or an earlier one.
call('HSETNX', KEYS[1], 'id', ARGV[1])
if tonumber(call('GET', KEYS[2]) or 0) < tonumber(ARGV[2]) then
  call('SET', KEYS[2], ARGV[2])
end
return call('HGET', KEYS[1], 'id')
