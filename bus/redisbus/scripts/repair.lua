-- repair looks after mailboxes that stand nowhere or are not as their state
-- says: what transitions in one script each cannot leave behind, but an
-- operator, a restore or a bug can. A lease that nobody extends then runs out.
-- KEYS clock state due leased wake, then lists of mailboxes
-- ARGV lease, then the keys of the mailboxes
-- Returns how many had to be repaired.
local clock, state, due, leased, wake = unpack(KEYS, 1, 5)
local now = read_clock(clock)
local repaired = 0
for i = 2, #ARGV do
  local key = ARGV[i]
  local line = call('HGET', state, key)
  if line then
    local box = parse_box(line)
    local count = call('LLEN', KEYS[i + 4])
    if not box.owner or count == 0 then
      -- Without a legible line the list is all there is to go by.
      box = count > 0 and {owner = '-', fence = '0', attempts = 0, first = now + 1, count = count, urgent = 0, since = now}
      call('HDEL', state, key)
      call('ZREM', leased, key)
      call('ZREM', due, key)
      if box then
        save_box(state, key, box)
        put_due(due, wake, key, now, now)
      end
      repaired = repaired + 1
    else
      local wrong = count ~= box.count
      if wrong then
        box.count = count
        save_box(state, key, box)
      end
      if box.owner == '-' and not call('ZSCORE', due, key) then
        call('ZREM', leased, key)
        put_due(due, wake, key, now, now)
        wrong = true
      elseif box.owner ~= '-' and not call('ZSCORE', leased, key) then
        call('ZREM', due, key)
        call('ZADD', leased, whole(now + tonumber(ARGV[1])), key)
        wrong = true
      end
      if wrong then
        repaired = repaired + 1
      end
    end
  end
end
return repaired
