-- A mailbox holds a message as a text: not_before published urgent
-- replays length-of-id, each followed by a space, then id and body with nothing between.
local MESSAGE = '^(%d+) (%d+) ([01]) (%d+) (%d+) ()'

local function write_message(l)
  return string.format('%s %.0f %d %d %d %s', l.not_before, l.published, l.urgent and 1 or 0, l.replays, #l.id, l.id) .. l.body
end

local function read_message(text)
  local not_before, published, urgent, replays, length, start = string.match(text, MESSAGE)
  return {
    not_before = not_before, published = tonumber(published), urgent = urgent == '1', replays = tonumber(replays),
    id = string.sub(text, start, start + length - 1), body = string.sub(text, start + length),
  }
end
