--! clock contact
-- count counts a lease of any shard as one that works for a group, and what begins under it.
-- KEYS clock contact counted begun
-- counted is a sorted set of the leases that work for the group, by the times at which they stop counting unless
-- their holders keep them; begun is a sorted set of what has begun for the group, by its time.
-- ARGV the lease time, for how long it counts, what names the lease, id at_once hour, for how many milliseconds counted
-- is kept
-- id is empty if no bound holds.
-- Returns counted, busy, or over and after how many microseconds an id may begin.
local clock, contact, counted, begun = unpack(KEYS)
local lease, length, member, id = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4]
local at_once, hour = tonumber(ARGV[5]), tonumber(ARGV[6])

local HOUR = 3600 * SECOND

local now, spared = note_contact(contact, clock, lease)
call('ZREMRANGEBYSCORE', begun, '-inf', whole(now - HOUR))
-- After an outage the holders get the time to say that they are still there.
if now >= spared then
  call('ZREMRANGEBYSCORE', counted, '-inf', whole(now))
end
if id ~= '' then
  local busy = call('ZCARD', counted)
  if call('ZSCORE', counted, member) then
    busy = busy - 1
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
call('ZADD', counted, whole(now + length), member)
call('PEXPIRE', counted, ARGV[7])
return {'counted'}
