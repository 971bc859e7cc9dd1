--! clock box line
-- forget removes messages from a mailbox. If it has some of them, it takes the mailbox from its holder, who may be
-- working on one. The messages that are left get new numbers above all old ones, so that no number means two messages.
-- KEYS clock state due leased wake heads mail
-- ARGV key, start of the channel names of notes, how long the mailbox rests so that
-- work under way can end, 1 if an earlier run took the mailbox from its holder, messages
-- Returns how many messages were removed, and 1 if somebody held the mailbox.
local clock, state, due, leased, wake, heads, mail = unpack(KEYS)
local key, notes, wind_down, rests = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4] == '1'

local box = load_box(state, key)
if not box then
  return {0, 0}
end

-- A message is removed by its text, which holds its id: an earlier run may have given
-- it another number. The first message is in heads, and the others are in the list.
local removed, first_gone = 0, false
for i = 5, #ARGV do
  if call('HGET', heads, key) == ARGV[i] then
    first_gone = true
    removed = removed + 1
    local next_one = call('LPOP', mail)
    if next_one then
      call('HSET', heads, key, next_one)
    else
      call('HDEL', heads, key)
    end
  else
    removed = removed + call('LREM', mail, 1, ARGV[i])
  end
end
if removed == 0 then
  return {0, 0}
end

local now, ahead = read_clock(clock)
local held = box.owner ~= FREE
if held then
  call('PUBLISH', notes .. box.owner, whole(box.fence) .. ' -1') -- the holder loses its lease now
  call('ZREM', leased, key)
  -- The claim does not count, as nobody is to blame for its end.
  box.owner, box.fence, box.attempts = FREE, 0, box.attempts - 1
end
box.first, box.count = box.first + box.count, box.count - removed
if box.count == 0 then
  call('HDEL', state, key)
  call('ZREM', due, key)
  -- An empty mailbox keeps no state. The next message is numbered from the clock, which
  -- therefore must not be behind the numbers given here.
  if box.first > now then
    call('SET', clock, whole(box.first))
  end
  return {removed, held and 1 or 0}
end

local function is_urgent(text)
  return string.match(text, '^%d+ %d+ 1 ') ~= nil
end

local head = call('HGET', heads, key)
if box.urgent > 0 then
  box.urgent = is_urgent(head) and box.first or 0
  for i = 0, box.count - 2 do
    if is_urgent(call('LINDEX', mail, i)) then
      box.urgent = box.first + i + 1
    end
  end
end
if first_gone then
  box.attempts = 0 -- those were the claims of the first message, which is gone
end
local not_before, published = string.match(head, '^(%d+) (%d+) ')
box.since = tonumber(published)
save_box(state, key, box)
if held or first_gone then
  put_due(due, wake, key, math.max(now + ((held or rests) and wind_down or 0), not_before + ahead), now)
end
return {removed, held and 1 or 0}
