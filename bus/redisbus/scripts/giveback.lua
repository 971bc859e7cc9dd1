--! clock box line
-- giveback ends leases whose holder did not begin to work or stops working, and puts
-- their mailboxes at the front of the line.
-- KEYS state due leased wake
-- ARGV 1 if the claims are to count, then per lease: key fence
local state, due, leased, wake = unpack(KEYS)
for i = 2, #ARGV, 2 do
  local key = ARGV[i]
  local box = load_box(state, key)
  if box and box.fence == tonumber(ARGV[i + 1]) then
    call('ZREM', leased, key)
    box.owner, box.fence = FREE, 0
    if ARGV[1] ~= '1' then
      box.attempts = box.attempts - 1
    end
    save_box(state, key, box)
    call('ZADD', due, 0, key)
    wake_one(wake, key)
  end
end
return redis.status_reply('OK')
