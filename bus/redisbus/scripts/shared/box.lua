-- A mailbox that holds mail, and only such a one, has a field in the hash `state`:
--   owner     the process that has leased it, or FREE
--   fence     the number of the lease, or 0
--   attempts  claims since something was last settled
--   first, count  number its letters
--   urgent    the highest number that is urgent, or 0
--   since     when the first letter was published
-- Its first letter is in the hash `heads`, so that it can come with a claim; those
-- behind it are a list of the mailbox's own. One that nobody has leased stands in
-- the sorted set `due` by when it may be claimed, one that is leased in `leased`
-- by when the lease ends.
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
