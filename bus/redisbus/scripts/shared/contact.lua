-- note_contact writes down that the fleet was in touch. It returns the time, and
-- until when leases that have run out are not to be taken away. After half a lease
-- time without contact that is for one lease time: it was the server that was away,
-- and those who hold leases have yet to come back.
-- Once the server's clock was set back, the time goes on from where it was, by as
-- much as passes from contact to contact: what waits and what runs out still does.
local function note_contact(contact, clock, lease)
  -- The first write is one that a server without memory does not refuse, so
  -- that mail can be worked off; after the first no other is refused.
  call('PERSIST', contact)
  local now, ahead = read_clock(clock)
  local servers = now - ahead
  local last, spared, seen = string.match(call('GET', contact) or '', '^(%d+) (%d+) (%d+)$')
  if not last then
    last, spared, seen = 0, 0, servers
  end
  local passed = servers - seen
  if ahead > SECOND and passed > 0 then
    now = now + passed
    call('SET', clock, whole(now))
  end
  spared = tonumber(spared)
  if now - last > lease / 2 then
    spared = now + lease
  end
  call('SET', contact, whole(now) .. ' ' .. whole(spared) .. ' ' .. whole(servers))
  return now, spared
end
