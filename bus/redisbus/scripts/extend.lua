--! clock contact box
-- extend extends leases of one topic, each to a time of its own from now on.
-- KEYS clock contact state leased
-- ARGV lease, then per lease: key fence time
-- Returns per lease the number of the last message, or -1 if the lease is lost.
local now = note_contact(KEYS[2], KEYS[1], tonumber(ARGV[1]))
local answers = {}
for i = 2, #ARGV, 3 do
  local box = load_box(KEYS[3], ARGV[i])
  if box and box.fence == tonumber(ARGV[i + 1]) then
    -- A lease that has run out but was not reaped is extended too: nobody else has
    -- had the mailbox.
    call('ZADD', KEYS[4], whole(now + tonumber(ARGV[i + 2])), ARGV[i])
    answers[#answers + 1] = whole(box.first + box.count - 1)
  else
    answers[#answers + 1] = '-1'
  end
end
return answers
