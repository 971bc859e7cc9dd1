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
