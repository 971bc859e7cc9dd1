-- A letter is a message as a mailbox holds it. Its text is: not_before published urgent
-- replays length-of-id, each followed by a space, then id and body with nothing between.
local LETTER = '^(%d+) (%d+) ([01]) (%d+) (%d+) ()'

local function write_letter(l)
  return string.format('%s %.0f %d %d %d %s', l.not_before, l.published, l.urgent and 1 or 0, l.replays, #l.id, l.id) .. l.body
end

local function read_letter(text)
  local not_before, published, urgent, replays, length, start = string.match(text, LETTER)
  return {
    not_before = not_before, published = tonumber(published), urgent = urgent == '1', replays = tonumber(replays),
    id = string.sub(text, start, start + length - 1), body = string.sub(text, start + length),
  }
end
