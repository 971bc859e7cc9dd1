--! clock box line message accept
-- import_message stores a message of another bus. A message with a number that is not above
-- the last one stored was stored before. The ids cannot tell, as known ids are forgotten
-- after two days.
-- KEYS as for publish, then moved
-- ARGV topic key id urgent not_before day notes replays attempts due number body
-- Returns as publish does, and stored also if the message was stored before.
local state, due, moved = KEYS[3], KEYS[4], KEYS[11]
local key, urgent, number = ARGV[2], ARGV[4] == '1', ARGV[11]
if tonumber(call('HGET', moved, 'number') or 0) >= tonumber(number) then
  return {'stored'}
end
local answer = accept(
  {clock = KEYS[1], topics = KEYS[2], state = state, due = due, wake = KEYS[5], heads = KEYS[6],
    mail = KEYS[7], seen_today = KEYS[8], seen_yesterday = KEYS[9]},
  {topic = ARGV[1], key = key, id = ARGV[3], cap = 0, bytes = 0, urgent = urgent, not_before = ARGV[5],
    day = tonumber(ARGV[6]), notes = ARGV[7], replays = tonumber(ARGV[8]), body = ARGV[12]})
if answer[1] ~= 'stored' then
  return answer
end
call('HSET', moved, 'number', number)
local attempts, at = tonumber(ARGV[9]), tonumber(ARGV[10])
if attempts > 0 then
  local box = load_box(state, key)
  box.attempts = attempts
  save_box(state, key, box)
end
if at > 0 and not urgent then
  local _, ahead = read_clock(KEYS[1])
  call('ZADD', due, 'XX', 'GT', whole(at + ahead), key)
end
return answer
