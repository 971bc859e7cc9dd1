-- settle ends a lease: it forgets letters up to one number, buries those behind
-- up to another, and gives back the rest.
-- KEYS clock state due leased wake mail dead graves
-- ARGV key fence done dead reason after uncounted seen
-- Returns settled or fenced.
local clock, state, due, leased, wake, mail, dead, graves = unpack(KEYS)
local key, fence, reason = ARGV[1], ARGV[2], ARGV[5]
local done, bury, after, seen = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[6]), tonumber(ARGV[8])

local box = load_box(state, key)
if not box or box.fence ~= fence then
  return 'fenced'
end
local now = read_clock(clock)
local last = box.first + box.count - 1
local upto = math.min(math.max(done, bury), last)
call('ZREM', leased, key)

if bury > done then
  local from = math.max(done + 1, box.first)
  for number = from, upto, 16 do
    local some = call('LRANGE', mail, number - box.first, math.min(number + 15, upto) - box.first)
    for i, text in ipairs(some) do
      local id = read_letter(text).id
      local head = string.format('%d %s %s %d %d ', box.attempts, whole(now), whole(number + i - 1), #key, #reason)
      call('HSET', dead, id, head .. key .. reason .. text)
      call('ZADD', graves, whole(now + number + i - 1 - from), id)
    end
  end
end

local removed = math.max(0, upto - box.first + 1)
if removed == box.count then
  call('DEL', mail)
  call('HDEL', state, key)
  if last > now then
    call('SET', clock, whole(last)) -- whoever writes here next counts on from it
  end
  return 'settled'
end

if removed > 0 then
  call('LTRIM', mail, removed, -1)
  box.first, box.count, box.attempts = box.first + removed, box.count - removed, 0
elseif ARGV[7] == '1' then
  box.attempts = box.attempts - 1
end
if box.urgent < box.first then
  box.urgent = 0
end
local not_before, published = read_head(mail)
box.since = published
free_box(box)
save_box(state, key, box)
-- Urgent mail that whoever settles did not know of ends any wait.
local at = box.urgent > seen and now or math.max(now + after, not_before)
put_due(due, wake, key, at, now)
return 'settled'
