--! clock contact box line page
-- claim leases due mailboxes to one process. It returns the only message of a
-- mailbox with it, and several of a mailbox whose list is declared in KEYS.
-- KEYS clock contact pause state due leased wake heads, then lists of mailboxes
-- ARGV owner wanted lease hold, the channel to which processes that claim here listen ('' for none), how many mailboxes
-- are offered to this one, then the keys of the mailboxes whose lists are in KEYS: first those that are offered
-- Returns how long until there is something to do (-1: nothing to wait for), per
-- mailbox {key, fence, attempts, first, count, messages}, the mailboxes next in line, and, if there is a channel, how many
-- mailboxes are leased and how many processes listen to it (-1 if the server does not tell).
local clock, contact, pause, state, due, leased, wake, heads = unpack(KEYS, 1, 8)
local owner, wanted, lease, hold = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local channel, offered = ARGV[5], tonumber(ARGV[6])

local REAPED_AT_ONCE = 32
local MESSAGES, BYTES, ALL_BYTES = 16, 65536, 1048576

local now, spared = note_contact(contact, clock, lease)

-- The pause is a key that expires by itself; nothing is claimed while it exists.
local paused = call('PTTL', pause)
if paused >= 0 then
  return {whole(math.max(paused, 1) * 1000), {}, {}}
end

-- Reap leases that have run out. Their holders were cut off in mid-turn, so score 0 puts their mailboxes
-- at the front of the line. Few are reaped in one run, as nothing else runs in Redis meanwhile; the next
-- runs reap the others.
if now >= spared then
  for _, key in ipairs(call('ZRANGEBYSCORE', leased, '-inf', whole(now), 'LIMIT', 0, REAPED_AT_ONCE)) do
    call('ZREM', leased, key)
    local box = load_box(state, key)
    if box then
      box.owner, box.fence = FREE, 0
      save_box(state, key, box)
      call('ZADD', due, 0, key)
    end
  end
end

local lists = {}
for i = 7, #ARGV do
  lists[ARGV[i]] = KEYS[i + 2]
end

-- add_offered adds the mailboxes that are offered to this process, each where it would stand if it were due since the
-- offer. So nobody else's mail waits longer because of offers.
local function add_offered(keys)
  local since = {}
  for i = 1, #keys do
    since[keys[i]] = tonumber(call('ZSCORE', due, keys[i]))
  end
  for i = 7, 6 + offered do
    local at = tonumber(call('ZSCORE', due, ARGV[i]) or math.huge)
    if not since[ARGV[i]] and at - OFFER <= now then
      since[ARGV[i]] = at - OFFER
      keys[#keys + 1] = ARGV[i]
    end
  end
  table.sort(keys, function(a, b)
    return since[a] < since[b]
  end)
end

-- Twice as many as wanted are read. The rest are returned as next in line, so that the
-- next run can declare their lists.
local granted, next_in_line = {}, {}
local keys = call('ZRANGEBYSCORE', due, '-inf', whole(now), 'LIMIT', 0, 2 * wanted)
if offered > 0 then
  add_offered(keys)
end
if #keys > 0 then
  local taken, leases, states, total = {}, {}, {}, 0
  local ends = whole(now + math.min(lease, hold))
  for i, key in ipairs(keys) do
    if #granted == wanted then
      next_in_line[#next_in_line + 1] = key
    else
      taken[#taken + 1] = key
      local box = load_box(state, key)
      if box then
        -- Each fence is one above the last; the clock moves along below.
        now = now + 1
        box.owner, box.fence, box.attempts = owner, now, box.attempts + 1
        states[#states + 1], states[#states + 2] = key, pack_box(box)
        leases[#leases + 1], leases[#leases + 2] = ends, key
        local page, size = {}, 0
        -- A mailbox with several messages whose list is not declared gives none: its
        -- holder reads them all together.
        if total < ALL_BYTES and (box.count == 1 or lists[key]) then
          page, size = read_page(heads, lists[key], key, 0, math.min(MESSAGES, box.count), BYTES)
          total = total + size
        end
        granted[#granted + 1] = {key, whole(box.fence), box.attempts, whole(box.first), box.count, page}
      end
    end
  end
  -- A mailbox whose state cannot be read leaves the line too, else it would stay at the
  -- front for ever; repair puts it back.
  call('ZREM', due, unpack(taken))
  if #granted > 0 then
    call('HSET', state, unpack(states))
    call('ZADD', leased, unpack(leases))
    call('SET', clock, whole(now))
  end
end

-- If mail is still due, one more process is woken; it wakes the next in turn.
local wait = -1
local first = call('ZRANGE', due, 0, 0, 'WITHSCORES')
if first[1] then
  wait = math.max(0, first[2] - now)
  if wait == 0 then
    wake_one(wake, first[1])
  end
end
first = call('ZRANGE', leased, 0, 0, 'WITHSCORES')
if first[1] then
  local ends = math.max(0, tonumber(first[2]) - now, spared - now)
  if wait < 0 or ends < wait then
    wait = ends
  end
end
if channel == '' then
  return {whole(wait), granted, next_in_line}
end
local listening = redis.pcall('PUBSUB', 'NUMSUB', channel)
return {whole(wait), granted, next_in_line, call('ZCARD', leased), listening.err and -1 or tonumber(listening[2])}
