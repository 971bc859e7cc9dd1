-- weigh_box estimates how many bytes wait in a mailbox, by asking Redis for the size of its list. There
-- is no stored sum that releases which do not count bytes could make wrong. On a server that refuses
-- MEMORY USAGE the mailbox has no bound of bytes.
local function weigh_box(keys, key)
  local list = redis.pcall('MEMORY', 'USAGE', keys.mail, 'SAMPLES', 0)
  return call('HSTRLEN', keys.heads, key) + (type(list) == 'number' and list or 0)
end

-- Weighing takes longer the longer the list is, so for small messages it is done at
-- every sixteenth message only.
local SMALL = 4096

-- lacks_room tells why a mailbox takes no further message; nil if it does.
local function lacks_room(keys, message, box)
  if message.cap > 0 and box.count >= message.cap then
    return 'full'
  end
  if message.bytes > 0 and (#message.body > SMALL or box.count % 16 == 0)
    and weigh_box(keys, message.key) + #message.body > message.bytes then
    return 'much'
  end
end

-- accept puts a message at the end of its mailbox. A message that is refused for
-- lack of room leaves no trace of its id, so that it can be published again. The first write
-- is SADD, which a server without memory refuses: then nothing is written at all.
--   keys: clock topics state due wake heads mail seen_today seen_yesterday, and last where an empty mailbox may be
--     offered to the process that had it last
--   message: topic key cap bytes day notes, and the fields of a message
local function accept(keys, message)
  local now, ahead = read_clock(keys.clock)
  local today = math.floor(now / DAY)
  -- The caller named the sets of known ids by its own idea of the day.
  if today ~= message.day then
    return {'day', today}
  end
  -- An id is known for the rest of its day and all of the next.
  if call('SISMEMBER', keys.seen_yesterday, message.id) == 1 then
    return {'known'}
  end
  local box = load_box(keys.state, message.key)
  local lack = box and lacks_room(keys, message, box)
  if lack then
    return {call('SISMEMBER', keys.seen_today, message.id) == 1 and 'known' or lack}
  end
  if call('SADD', keys.seen_today, message.id) == 0 then
    return {'known'}
  end
  if call('SCARD', keys.seen_today) == 1 then
    call('PEXPIRE', keys.seen_today, whole((2 * DAY + 3600 * SECOND) / 1000))
  end

  message.published = now
  if not box then
    -- An empty mailbox has no state. Messages are numbered from the clock, which only
    -- grows, so that its numbers grow all the same.
    box = {owner = FREE, fence = 0, attempts = 0, first = now + 1, count = 1, since = now}
    box.urgent = message.urgent and box.first or 0
    save_box(keys.state, message.key, box)
    call('HSET', keys.heads, message.key, write_message(message))
    if call('HLEN', keys.state) == 1 then
      call('ZADD', keys.topics, whole(now), message.topic)
    end
    local at = message.urgent and now or math.max(now, message.not_before + ahead)
    if at > now or not keys.last or not offer_mailbox(keys.due, keys.last, message.notes, message.topic, message.key, now) then
      put_due(keys.due, keys.wake, message.key, at, now)
    end
    return {'stored'}
  end

  local number = box.first + box.count
  box.count = box.count + 1
  if message.urgent then
    box.urgent = number
  end
  save_box(keys.state, message.key, box)
  call('RPUSH', keys.mail, write_message(message))
  if box.owner ~= FREE then
    -- The holder hears of the message, so that it can steer the turn under way. If the
    -- note is lost, the next extension returns the number.
    call('PUBLISH', message.notes .. box.owner, whole(box.fence) .. ' ' .. whole(number))
  elseif message.urgent then
    call('ZADD', keys.due, 'LT', whole(now), message.key)
    wake_one(keys.wake, message.key)
  end
  return {'stored'}
end
