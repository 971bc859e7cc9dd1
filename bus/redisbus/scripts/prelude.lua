-- What the scripts share. Every script begins with this text.
--
-- A mailbox is a line in the hash `state` while it holds mail, and only then:
--   owner fence attempts first count urgent since
-- owner is the process that has leased it, or -; fence the lease's number, or 0;
-- first and count number its letters; urgent is the highest number that is
-- urgent, or 0; since is when the first letter was published. Its letters are
-- the list `mail`. One that nobody has leased stands in the sorted set `due` by
-- when it may be claimed, one that is leased in `leased` by when the lease ends.
--
-- All times are the server's, in microseconds.

local call = redis.call

local SECOND = 1000000
local DAY = 86400 * SECOND

-- Lua would round numbers of sixteen digits where it makes strings of them.
local function whole(n)
  return string.format('%.0f', n)
end

-- The time, which is never behind the highest number that was given out.
local function read_clock(clock)
  local t = call('TIME')
  return math.max(t[1] * SECOND + t[2], tonumber(call('GET', clock) or 0))
end

local function parse_box(line)
  local owner, fence, attempts, first, count, urgent, since =
    string.match(line, '^(%S+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
  return {
    owner = owner, fence = fence, attempts = tonumber(attempts), first = tonumber(first),
    count = tonumber(count), urgent = tonumber(urgent), since = tonumber(since),
  }
end

-- A line that cannot be read counts as none, until repair has seen to it.
local function load_box(state, key)
  local line = call('HGET', state, key)
  local box = line and parse_box(line)
  return box and box.owner and box
end

local function write_box(box)
  return string.format('%s %s %d %.0f %d %.0f %.0f',
    box.owner, box.fence, box.attempts, box.first, box.count, box.urgent, box.since)
end

local function save_box(state, key, box)
  call('HSET', state, key, write_box(box))
end

local function free_box(box)
  box.owner, box.fence = '-', '0'
end

-- wake_one tells one of those who wait for mail that something may be claimed. The
-- token names the mailbox, so that whoever comes can ask for its mail at once.
local function wake_one(wake, key)
  if call('LLEN', wake) == 0 then
    call('LPUSH', wake, key)
  end
end

-- put_due lets a mailbox be claimed from some time on. Those who wait ask by
-- themselves once a second; for what is due earlier somebody has to be told.
local function put_due(due, wake, key, at, now)
  call('ZADD', due, whole(at), key)
  if at <= now + SECOND then
    wake_one(wake, key)
  end
end

-- A letter is what stands in a mailbox: not_before published urgent replays
-- length-of-id, then id and body without anything between.
local LETTER = '^(%d+) (%d+) ([01]) (%d+) (%d+) ()'

local function write_letter(l)
  return string.format('%s %s %s %d %d ', l.not_before, whole(l.published), l.urgent and 1 or 0, l.replays, #l.id)
    .. l.id .. l.body
end

local function read_letter(text)
  local not_before, published, urgent, replays, length, start = string.match(text, LETTER)
  return {
    not_before = not_before, published = tonumber(published), urgent = urgent == '1', replays = tonumber(replays),
    id = string.sub(text, start, start + length - 1), body = string.sub(text, start + length),
  }
end

-- read_head reads of the first letter what its mailbox depends on.
local function read_head(mail)
  local text = call('LINDEX', mail, 0)
  if not text then
    return 0, 0
  end
  local not_before, published = string.match(text, LETTER)
  return tonumber(not_before), tonumber(published)
end

-- read_page reads letters from a place in the list on, until they are many or large.
local function read_page(mail, from, most, bytes)
  local page, size, step = {}, 0, 2
  while #page < most and size < bytes do
    local wanted = math.min(step, most - #page)
    local some = call('LRANGE', mail, from + #page, from + #page + wanted - 1)
    for _, text in ipairs(some) do
      page[#page + 1] = text
      size = size + #text
    end
    if #some < wanted then
      break
    end
    step = 16
  end
  return page, size
end

-- note_contact writes down that the fleet was in touch, and says whether leases
-- that have run out may be taken away. After half a lease time without contact
-- they may not for one lease time: it was the server that was away, and those
-- who hold leases have yet to come back.
local function note_contact(contact, now, lease)
  -- The first write is one that a server without memory does not refuse, so
  -- that mail can be worked off; after the first no other is refused.
  call('PERSIST', contact)
  local last, spared = string.match(call('GET', contact) or '0 0', '^(%d+) (%d+)$')
  spared = tonumber(spared)
  if now - last > lease / 2 then
    spared = now + lease
  end
  call('SET', contact, whole(now) .. ' ' .. whole(spared))
  return spared
end

-- accept puts a letter at the end of its mailbox. The id of one that is refused
-- is not burnt. The first write is one that a server without memory refuses.
--   keys: clock topics state due wake mail seen_today seen_yesterday
--   letter: topic key cap day notes, and the fields of a letter
local function accept(keys, letter)
  local now = read_clock(keys.clock)
  local today = whole(math.floor(now / DAY))
  if today ~= letter.day then
    return {'day', today}
  end
  if call('SISMEMBER', keys.seen_yesterday, letter.id) == 1 then
    return {'known'}
  end
  local box = load_box(keys.state, letter.key)
  if box and letter.cap > 0 and not letter.urgent and box.count >= letter.cap then
    return {call('SISMEMBER', keys.seen_today, letter.id) == 1 and 'known' or 'full'}
  end
  if call('SADD', keys.seen_today, letter.id) == 0 then
    return {'known'}
  end
  if call('SCARD', keys.seen_today) == 1 then
    call('PEXPIRE', keys.seen_today, whole((2 * DAY + 3600 * SECOND) / 1000))
  end

  -- A new mailbox counts on from the clock, so that an empty one has nothing to remember.
  local fresh = not box
  box = box or {owner = '-', fence = '0', attempts = 0, first = now + 1, count = 0, urgent = 0, since = now}
  local number = box.first + box.count
  box.count = box.count + 1
  if letter.urgent then
    box.urgent = number
  end
  letter.published = now
  call('RPUSH', keys.mail, write_letter(letter))
  save_box(keys.state, letter.key, box)

  if fresh then
    if call('HLEN', keys.state) == 1 then
      call('ZADD', keys.topics, whole(now), letter.topic)
    end
    local at = letter.urgent and now or math.max(now, tonumber(letter.not_before))
    put_due(keys.due, keys.wake, letter.key, at, now)
  elseif box.owner ~= '-' then
    call('PUBLISH', letter.notes .. box.owner, box.fence .. ' ' .. whole(number))
  elseif letter.urgent then
    call('ZADD', keys.due, 'LT', whole(now), letter.key)
    wake_one(keys.wake, letter.key)
  end
  return {'stored'}
end
