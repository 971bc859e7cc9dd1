--! clock box page
-- read returns the messages of a mailbox beyond a number. With a fence it does so only
-- if the mailbox is leased under that fence; the fence may be empty.
-- KEYS state heads mail
-- ARGV key fence after
-- Returns {} if the mailbox is not leased under that fence or is empty, else the number
-- of the first message returned, the number of the last in the mailbox, and messages.
local box = load_box(KEYS[1], ARGV[1])
if not box or ARGV[2] ~= '' and box.fence ~= tonumber(ARGV[2]) then
  return {}
end
local from = math.max(0, tonumber(ARGV[3]) + 1 - box.first)
local last = box.first + box.count - 1
return {whole(box.first + from), whole(last), (read_page(KEYS[2], KEYS[3], ARGV[1], from, 64, 262144))}
