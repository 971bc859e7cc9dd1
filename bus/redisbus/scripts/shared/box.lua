-- A mailbox that holds mail has a field in the hash `state`; an empty one has none:
--   owner     the process that has leased it, or FREE
--   fence     the number of the lease, or 0
--   attempts  how often it was claimed since one of its messages was last settled
--   first     the number of its first message; the others follow without a gap
--   count     how many messages it holds
--   urgent    the number of its last urgent message, or 0
--   since     when its first message was published
-- Its first message is in the hash `heads`, so that the claim script can return it
-- without a key of the mailbox's own. The messages behind it are in a list of the
-- mailbox's own. A mailbox that nobody has leased is in the sorted set `due`, by the
-- time at which it may be claimed; a leased one is in `leased`, by the time at which
-- the lease ends.
local BOX = '>c12I8I4I8I4I8I8'
local FREE = '------------'

-- A state that cannot be read counts as no mailbox, until repair mends it.
local function parse_box(packed)
  if #packed ~= 52 then
    return nil
  end
  local box = {}
  box.owner, box.fence, box.attempts, box.first, box.count, box.urgent, box.since = struct.unpack(BOX, packed)
  return box
end

local function load_box(state, key)
  local packed = call('HGET', state, key)
  return packed and parse_box(packed)
end

local function pack_box(box)
  return struct.pack(BOX, box.owner, box.fence, box.attempts, box.first, box.count, box.urgent, box.since)
end

local function save_box(state, key, box)
  call('HSET', state, key, pack_box(box))
end
