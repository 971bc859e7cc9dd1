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

-- Until an offered mailbox is due, only the process that it is offered to claims it.
local OFFER = 250000

-- offer_mailbox offers a mailbox that has become due to the process that had it last, which may still remember the
-- session. Nobody else is woken: a process that cannot take the mailbox declines it. If a process neither takes nor
-- declines it, the mailbox is due soon, and others find it when they look, at the latest after a second. offer_mailbox
-- returns false if it is not known who had the mailbox, or if that process is gone.
local function offer_mailbox(due, last, notes, topic, key, now)
  local process = call('GET', last)
  if not process or call('PUBLISH', notes .. process, 'offer ' .. #topic .. ' ' .. topic .. key) == 0 then
    return false
  end
  call('ZADD', due, whole(now + OFFER), key)
  return true
end
