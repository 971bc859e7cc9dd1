--! clock box page
-- peek returns messages of a mailbox, whether or not somebody holds it.
-- KEYS state heads mail
-- ARGV key place
-- Returns how often the mailbox was claimed, the number of its first message, and
-- messages from that place on; {} if there is none.
local box = load_box(KEYS[1], ARGV[1])
if not box or tonumber(ARGV[2]) >= box.count then
  return {}
end
return {box.attempts, whole(box.first), (read_page(KEYS[2], KEYS[3], ARGV[1], tonumber(ARGV[2]), 64, 262144))}
