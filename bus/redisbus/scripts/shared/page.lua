-- read_page reads messages from a place on (the first in a mailbox has place 0), until it
-- has `most` messages or `bytes` bytes. It returns them and their size.
local function read_page(heads, mail, key, place, most, bytes)
  local page, size, step = {}, 0, 1
  if place == 0 then
    local head = call('HGET', heads, key)
    if not head then
      return page
    end
    page[1], size = head, #head
  end
  while #page < most and size < bytes do
    local from = place + #page - 1
    local wanted = math.min(step, most - #page)
    local some = call('LRANGE', mail, from, from + wanted - 1)
    for _, text in ipairs(some) do
      page[#page + 1] = text
      size = size + #text
    end
    if #some < wanted then
      break
    end
    step = 16 -- the second message is read alone, as it may be large; then 16 at a time
  end
  return page, size
end
