--! clock line
-- decline gives up mailboxes that were offered to a process, so that others can claim them at once.
-- KEYS clock due wake
-- ARGV the mailboxes' keys
local now = read_clock(KEYS[1])
for _, key in ipairs(ARGV) do
  local at = call('ZSCORE', KEYS[2], key)
  if at and tonumber(at) <= now + OFFER then
    put_due(KEYS[2], KEYS[3], key, math.min(now, tonumber(at)), now)
  end
end
return redis.status_reply('OK')
