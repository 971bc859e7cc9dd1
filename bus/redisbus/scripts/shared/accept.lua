-- weigh_box estimates how many bytes wait in a mailbox, by asking Redis for the size
-- of its list. So releases that do not count bytes cannot make the sum wrong. On a
-- server that refuses MEMORY USAGE the mailbox has no bound of bytes.
local function weigh_box(keys, key)
  local list = redis.pcall('MEMORY', 'USAGE', keys.mail, 'SAMPLES', 0)
  return call('HSTRLEN', keys.heads, key) + (type(list) == 'number' and list or 0)
end

-- Weighing takes longer the longer the list is, so for small letters it is done at
-- every sixteenth letter only.
local SMALL = 4096

-- lacks_room tells why a mailbox takes no further letter; nil if it does.
local function lacks_room(keys, letter, box)
  if letter.cap > 0 and box.count >= letter.cap then
    return 'full'
  end
  if letter.bytes > 0 and (#letter.body > SMALL or box.count % 16 == 0)
    and weigh_box(keys, letter.key) + #letter.body > letter.bytes then
    return 'much'
  end
end

-- accept puts a letter at the end of its mailbox. A letter that is refused for
-- lack of room leaves no trace of its id, so that it can be published again. The first write
-- is SADD, which a server without memory refuses: then nothing is written at all.
--   keys: clock topics state due wake heads mail seen_today seen_yesterday
--   letter: topic key cap bytes day notes, and the fields of a letter
local function accept(keys, letter)
  local now, ahead = read_clock(keys.clock)
  local today = math.floor(now / DAY)
  -- The caller named the sets of known ids by its own idea of the day.
  if today ~= letter.day then
    return {'day', today}
  end
  -- An id is known for the rest of its day and all of the next.
  if call('SISMEMBER', keys.seen_yesterday, letter.id) == 1 then
    return {'known'}
  end
  local box = load_box(keys.state, letter.key)
  local lack = box and lacks_room(keys, letter, box)
  if lack then
    return {call('SISMEMBER', keys.seen_today, letter.id) == 1 and 'known' or lack}
  end
  if call('SADD', keys.seen_today, letter.id) == 0 then
    return {'known'}
  end
  if call('SCARD', keys.seen_today) == 1 then
    call('PEXPIRE', keys.seen_today, whole((2 * DAY + 3600 * SECOND) / 1000))
  end

  letter.published = now
  if not box then
    -- An empty mailbox has no state. Letters are numbered from the clock, which only
    -- grows, so that its numbers grow all the same.
    box = {owner = FREE, fence = 0, attempts = 0, first = now + 1, count = 1, since = now}
    box.urgent = letter.urgent and box.first or 0
    save_box(keys.state, letter.key, box)
    call('HSET', keys.heads, letter.key, write_letter(letter))
    if call('HLEN', keys.state) == 1 then
      call('ZADD', keys.topics, whole(now), letter.topic)
    end
    put_due(keys.due, keys.wake, letter.key, letter.urgent and now or math.max(now, letter.not_before + ahead), now)
    return {'stored'}
  end

  local number = box.first + box.count
  box.count = box.count + 1
  if letter.urgent then
    box.urgent = number
  end
  save_box(keys.state, letter.key, box)
  call('RPUSH', keys.mail, write_letter(letter))
  if box.owner ~= FREE then
    -- The holder hears of the letter, so that it can steer the turn under way. If the
    -- note is lost, the next extension returns the number.
    call('PUBLISH', letter.notes .. box.owner, whole(box.fence) .. ' ' .. whole(number))
  elseif letter.urgent then
    call('ZADD', keys.due, 'LT', whole(now), letter.key)
    wake_one(keys.wake, letter.key)
  end
  return {'stored'}
end
