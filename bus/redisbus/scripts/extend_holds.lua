--! 
-- extend_holds extends holds.
-- KEYS holds
-- ARGV milliseconds, then the fences of the holds
-- Returns per hold 1, or 0 if it is lost.
local answers = {}
for i, hold in ipairs(KEYS) do
  answers[i] = 0
  if redis.call('GET', hold) == ARGV[i + 1] then
    answers[i] = redis.call('PEXPIRE', hold, ARGV[1])
  end
end
return answers
