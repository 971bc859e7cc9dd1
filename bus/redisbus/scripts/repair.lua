--! clock box line
-- repair mends mailboxes that are neither due nor leased, or whose state does not
-- fit their messages. The scripts never leave such a mailbox behind, but an operator,
-- a restore or a bug can. Where the state says that a mailbox is leased and `leased`
-- lacks it, repair enters it there for one lease time: a holder that lives extends the
-- lease, and otherwise it runs out.
-- KEYS clock state due leased wake heads, then lists of mailboxes
-- ARGV lease, then the keys of the mailboxes
-- Returns how many had to be repaired.
local clock, state, due, leased, wake, heads = unpack(KEYS, 1, 6)
local now = read_clock(clock)

local function remove(key)
  call('HDEL', state, key)
  call('ZREM', leased, key)
  call('ZREM', due, key)
end

-- count_messages counts a mailbox's messages. If its head is missing, the first of the
-- list becomes the head.
local function count_messages(key, list)
  local behind = call('LLEN', list)
  if call('HEXISTS', heads, key) == 0 and behind > 0 then
    call('HSET', heads, key, call('LPOP', list))
    behind = behind - 1
  end
  return behind + call('HEXISTS', heads, key)
end

-- in_line puts a mailbox into `due` or `leased`, as its state says. It returns true if
-- the mailbox was there.
local function in_line(key, box)
  if box.owner == FREE then
    if call('ZSCORE', due, key) then
      return true
    end
    call('ZREM', leased, key)
    put_due(due, wake, key, now, now)
  else
    if call('ZSCORE', leased, key) then
      return true
    end
    call('ZREM', due, key)
    call('ZADD', leased, whole(now + tonumber(ARGV[1])), key)
  end
end

local repaired = 0
for i = 2, #ARGV do
  local key = ARGV[i]
  local packed = call('HGET', state, key)
  if packed then
    local box = parse_box(packed)
    local count = count_messages(key, KEYS[i + 5])
    local right = box and count == box.count
    if count == 0 then
      remove(key)
    elseif not box then
      remove(key)
      save_box(state, key, {owner = FREE, fence = 0, attempts = 0, first = now + 1, count = count, urgent = 0, since = now})
      put_due(due, wake, key, now, now)
    else
      if not right then
        box.count = count
        save_box(state, key, box)
      end
      right = in_line(key, box) and right
    end
    if not right then
      repaired = repaired + 1
    end
  end
end
return repaired
