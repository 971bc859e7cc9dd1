--! clock box line message accept
-- publish stores a message, unless its id is known.
-- KEYS clock topics state due wake heads mail seen_today seen_yesterday last
-- ARGV topic key id cap bytes urgent not_before day notes body
-- Returns stored; known; full; much, if too many bytes wait; or day and the server's day.
return accept(
  {clock = KEYS[1], topics = KEYS[2], state = KEYS[3], due = KEYS[4], wake = KEYS[5], heads = KEYS[6],
    mail = KEYS[7], seen_today = KEYS[8], seen_yesterday = KEYS[9], last = KEYS[10]},
  {topic = ARGV[1], key = ARGV[2], id = ARGV[3], cap = tonumber(ARGV[4]), bytes = tonumber(ARGV[5]), urgent = ARGV[6] == '1',
    not_before = ARGV[7], day = tonumber(ARGV[8]), notes = ARGV[9], replays = 0, body = ARGV[10]})
