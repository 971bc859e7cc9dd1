-- note_contact writes down that the fleet was in touch, and says until when leases
-- that have run out are not to be taken away. After half a lease time without
-- contact that is for one lease time: it was the server that was away, and those
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
