--! clock box line message accept
-- replay publishes a dead letter again under a new id, and removes it from the dead
-- letters.
-- KEYS as for publish, then dead graves
-- ARGV topic key id cap bytes day notes replays and the message's present id
-- Returns as publish does, or gone if there is no such message in that mailbox.
local dead, graves, buried = KEYS[11], KEYS[12], ARGV[9]

local grave = call('HGET', dead, buried)
if not grave then
  return {'gone'}
end
local of_key, of_reason, start = string.match(grave, '^%d+ %d+ %d+ (%d+) (%d+) ()')
if string.sub(grave, start, start + of_key - 1) ~= ARGV[2] then
  return {'gone'}
end
local message = read_message(string.sub(grave, start + of_key + of_reason))
message.topic, message.key, message.id, message.cap = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
message.bytes, message.day, message.notes, message.replays = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7], tonumber(ARGV[8])
local answer = accept(
  {clock = KEYS[1], topics = KEYS[2], state = KEYS[3], due = KEYS[4], wake = KEYS[5], heads = KEYS[6],
    mail = KEYS[7], seen_today = KEYS[8], seen_yesterday = KEYS[9], last = KEYS[10]}, message)
if answer[1] == 'stored' then
  call('HDEL', dead, buried)
  call('ZREM', graves, buried)
end
return answer
