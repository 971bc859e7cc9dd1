-- wake_one wakes one process that waits for mail, by a token in the list that it
-- listens on. One token is enough: claim pushes the next if mail is left. It names
-- the mailbox, so that the process can declare that mailbox's list.
local function wake_one(wake, key)
  if call('LLEN', wake) == 0 then
    call('LPUSH', wake, key)
  end
end

-- put_due makes a mailbox claimable at a time. Processes that wait run the claim script
-- once a second anyway, so one of them is woken only for a mailbox that is due earlier.
local function put_due(due, wake, key, at, now)
  call('ZADD', due, whole(at), key)
  if at <= now + SECOND then
    wake_one(wake, key)
  end
end
