--! clock box line message page
-- settle ends a lease: it removes the messages up to done, makes dead letters of
-- those after it up to dead, and makes the rest claimable again.
-- KEYS clock state due leased wake heads mail dead graves last
-- ARGV key fence done dead reason after uncounted seen keep
-- seen is the highest number that the holder has read, and uncounted is 1 if the claim
-- is not to count. keep is for how many milliseconds to remember who had the mailbox; 0 for not at all.
-- Returns settled, offered if it has offered the mailbox to the holder again, or fenced.
local clock, state, due, leased, wake, heads, mail, dead, graves, holder = unpack(KEYS)
local key, fence, reason = ARGV[1], tonumber(ARGV[2]), ARGV[5]
local done, bury, after, seen = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[6]), tonumber(ARGV[8])

-- The fence is the proof of the lease: it is in no other, and 0 if nobody holds one.
local box = load_box(state, key)
if not box or box.fence ~= fence then
  return 'fenced'
end
local last = box.first + box.count - 1
local upto = math.min(math.max(done, bury), last)
call('ZREM', leased, key)
if ARGV[9] ~= '0' then
  call('SET', holder, box.owner, 'PX', ARGV[9])
end

-- bury_messages makes dead letters of those after done and up to dead. It reads 16 at a
-- time, so that a long mailbox is never whole in the script's memory.
local function bury_messages(now)
  local from = math.max(done + 1, box.first)
  local newest = call('ZREVRANGE', graves, 0, 0, 'WITHSCORES')
  local place = math.max(now, (newest[2] or 0) + 1) -- no two dead letters share a score, so that pages can go on after one
  for number = from, upto, 16 do
    local some = read_page(heads, mail, key, number - box.first, math.min(16, upto - number + 1), math.huge)
    for i, text in ipairs(some) do
      local id = read_message(text).id
      local head = string.format('%d %.0f %.0f %d %d ', box.attempts, now, number + i - 1, #key, #reason)
      call('HSET', dead, id, head .. key .. reason .. text)
      call('ZADD', graves, whole(place + number + i - 1 - from), id)
    end
  end
end

if bury > done then
  bury_messages(read_clock(clock))
end

local removed = math.max(0, upto - box.first + 1)
if removed == box.count then
  call('HDEL', state, key)
  call('HDEL', heads, key)
  if box.count > 1 then
    call('DEL', mail)
  end
  -- An empty mailbox keeps no state. The next message is numbered from the clock, so
  -- the clock must not be behind the last number given here.
  if last > box.fence and last > read_clock(clock) then
    call('SET', clock, whole(last))
  end
  return 'settled'
end

local now, ahead = read_clock(clock)
if removed > 0 then
  if removed > 1 then
    call('LTRIM', mail, removed - 1, -1)
  end
  call('HSET', heads, key, call('LPOP', mail))
  -- Attempts are claims of the first message, and that is a new one.
  box.first, box.count, box.attempts = box.first + removed, box.count - removed, 0
elseif ARGV[7] == '1' then
  box.attempts = box.attempts - 1
end
if box.urgent < box.first then
  box.urgent = 0
end
local head = read_message(call('HGET', heads, key))
box.since = head.published
box.owner, box.fence = FREE, 0
save_box(state, key, box)
-- Urgent mail that came after the holder last looked makes the mailbox due at once.
local at = box.urgent > seen and now or math.max(now + after, head.not_before + ahead)
-- A holder who has done something and is not delayed has probably room for the rest, too.
if at <= now and removed > 0 and ARGV[9] ~= '0' then
  call('ZADD', due, whole(now + OFFER), key)
  return 'offered'
end
put_due(due, wake, key, at, now)
return 'settled'
