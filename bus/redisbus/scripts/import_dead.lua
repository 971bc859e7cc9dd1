--! clock message
-- import_dead stores a dead letter of another bus. A second run with the same message does
-- nothing.
-- KEYS clock topics dead graves
-- ARGV topic key id reason attempts buried urgent not_before replays number body
-- Returns how many messages it has stored, 1 or 0.
local dead, graves, id = KEYS[3], KEYS[4], ARGV[3]
if call('ZSCORE', graves, id) then
  return 0
end
-- No two dead letters share a score, even if they were buried at the same time, so that
-- a list can go on after any of them.
local last = call('ZREVRANGE', graves, 0, 0, 'WITHSCORES')
local place = math.max(tonumber(ARGV[6]), tonumber(last[2] or 0) + 1)
local head = string.format('%d %s %s %d %d ', ARGV[5], ARGV[6], ARGV[10], #ARGV[2], #ARGV[4])
call('HSET', dead, id, head .. ARGV[2] .. ARGV[4] .. write_message({
  not_before = ARGV[8], published = tonumber(ARGV[6]), urgent = ARGV[7] == '1', replays = tonumber(ARGV[9]), id = id, body = ARGV[11],
}))
call('ZADD', graves, whole(place), id)
call('ZADD', KEYS[2], whole(read_clock(KEYS[1])), ARGV[1])
return 1
