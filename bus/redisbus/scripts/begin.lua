--! clock box
-- begin counts a lease as one that works for a group, and what begins under it.
-- KEYS clock state working begun left
-- working is a hash of the mailboxes whose leases work for the group, with their fences;
-- begun is a sorted set of what has begun for the group, by its time; left is the hash
-- working of the group for which the lease has worked until now.
-- ARGV key fence id at_once hour keep
-- id is empty if no bound holds, and key is only taken from left if at_once is negative;
-- keep is for how many milliseconds working is kept.
-- Returns counted, fenced, busy, or over and after how many microseconds an id may begin.
local clock, state, working, begun, left = unpack(KEYS)
local key, fence, id = ARGV[1], ARGV[2], ARGV[3]
local at_once, hour, keep = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6]

local HOUR = 3600 * SECOND

-- A first write that a full server takes (see note_contact).
if left ~= working or at_once < 0 then
  call('HDEL', left, key)
end
if at_once < 0 then
  return {'counted'}
end
local now = read_clock(clock)
call('ZREMRANGEBYSCORE', begun, '-inf', whole(now - HOUR))

local box = load_box(state, key)
if not box or box.fence ~= tonumber(fence) then
  return {'fenced'}
end

if id ~= '' then
  -- A lease that has ended, or has passed to another process, works no more.
  local busy = 0
  local all = call('HGETALL', working)
  for i = 1, #all, 2 do
    -- What an earlier lease of this mailbox has left is overwritten below.
    if all[i] ~= key then
      local other = load_box(state, all[i])
      if not other or other.fence ~= tonumber(all[i + 1]) then
        call('HDEL', working, all[i])
      else
        busy = busy + 1
      end
    end
  end
  if busy >= at_once then
    return {'busy'}
  end
  if not call('ZSCORE', begun, id) then
    local count = call('ZCARD', begun)
    if count >= hour then
      local last = call('ZRANGE', begun, count - hour, count - hour, 'WITHSCORES')
      return {'over', whole(last[2] + HOUR - now)}
    end
    call('ZADD', begun, whole(now), id)
    call('PEXPIRE', begun, whole(HOUR / 1000))
  end
end
call('HSET', working, key, fence)
call('PEXPIRE', working, keep)
return {'counted'}
