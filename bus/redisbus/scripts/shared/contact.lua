-- note_contact stores that some process has just talked to the server. It returns
-- the time, and the time until which the claim script must not reap leases. If no
-- process was in touch for half a lease time, the server was away and not the holders,
-- so they get one lease time to come back and extend their leases.
-- If the server's clock was set back, our time goes on from where it was, by as much
-- as the server's passes between two contacts, so that delays and leases still end.
local function note_contact(contact, clock, lease)
  -- Redis judges a script's memory at its first write. PERSIST needs none, so a full
  -- server takes it and all that follow: mail can be claimed and worked off.
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
