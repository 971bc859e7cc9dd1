package telegramtest

import (
	"maps"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
)

// kept is how many of the newest posts of a chat can be replied to.
const kept = 256

// Say lets a user write into a chat and returns the message's id. A chat below
// zero is a group.
func (s *Server) Say(chat, user int64, text string) int {
	return s.Post(chat, user, map[string]any{"text": text})
}

// Post lets a user put a message of any kind into a chat: the fields are
// Telegram's and may replace what is filled in. It returns the message's id.
func (s *Server) Post(chat, user int64, fields map[string]any) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chat(chat)
	c.lastID++
	id := c.lastID
	m := map[string]any{
		"message_id": id,
		"date":       time.Now().Unix(),
		"chat":       chatFields(chat),
		"from":       userFields(user),
	}
	maps.Copy(m, fields)
	if c.posts == nil {
		c.posts = make(map[int]map[string]any)
	}
	c.posts[id] = m
	delete(c.posts, id-kept)
	s.enqueue(map[string]any{"message": m})
	return id
}

// Reply lets a user answer a message of the chat, the bot's or another's. The
// message that is answered comes along whole, but for what it answers itself.
func (s *Server) Reply(chat, user int64, to int, fields map[string]any) int {
	answered := s.shown(chat, to)
	delete(answered, "reply_to_message")
	all := map[string]any{"reply_to_message": answered}
	maps.Copy(all, fields)
	return s.Post(chat, user, all)
}

// shown is a message of a chat as updates show it; a test that names none has a mistake.
func (s *Server) shown(chat int64, id int) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chat(chat)
	if m := c.posts[id]; m != nil {
		return maps.Clone(m)
	}
	for _, m := range c.sent {
		if m.ID == id {
			bot, _, _ := strings.Cut(s.token, ":")
			number, _ := strconv.ParseInt(bot, 10, 64) // New was given a token
			return map[string]any{
				"message_id": id,
				"date":       m.At.Unix(),
				"chat":       chatFields(chat),
				"from":       map[string]any{"id": number, "is_bot": true, "first_name": "Parley", "username": s.username},
				"text":       m.Text,
			}
		}
	}
	panic("telegramtest: chat " + strconv.FormatInt(chat, 10) + " has no message " + strconv.Itoa(id))
}

// Forward lets a user pass a message on. The origin is one of those that FromUser
// and the like make; the fields are the content.
func (s *Server) Forward(chat, user int64, origin, fields map[string]any) int {
	all := maps.Clone(fields)
	all["forward_origin"] = origin
	return s.Post(chat, user, all)
}

// FromUser is the origin of a user's message, at that time.
func FromUser(user int64, at time.Time) map[string]any {
	return map[string]any{"type": "user", "date": at.Unix(), "sender_user": userFields(user)}
}

// FromHidden is that of one who hides their account from those who get their
// messages passed on.
func FromHidden(name string, at time.Time) map[string]any {
	return map[string]any{"type": "hidden_user", "date": at.Unix(), "sender_user_name": name}
}

// FromGroup is that of a message in the name of a group.
func FromGroup(chat int64, title string, at time.Time) map[string]any {
	return map[string]any{"type": "chat", "date": at.Unix(), "sender_chat": titled(chat, "supergroup", title)}
}

// FromChannel is that of a channel's post, which may be signed.
func FromChannel(chat int64, title, signature string, at time.Time) map[string]any {
	origin := map[string]any{"type": "channel", "date": at.Unix(), "message_id": 1, "chat": titled(chat, "channel", title)}
	if signature != "" {
		origin["author_signature"] = signature
	}
	return origin
}

// Album lets a user post so many pictures together: as one message each, of
// which the first has the caption.
func (s *Server) Album(chat, user int64, caption string, pictures int) []int {
	group := strconv.FormatInt(time.Now().UnixNano(), 10)
	ids := make([]int, pictures)
	for i := range ids {
		s.keepPixel("p" + strconv.Itoa(i))
		fields := map[string]any{
			"media_group_id": group,
			"photo":          []any{map[string]any{"file_id": "p" + strconv.Itoa(i), "file_unique_id": "u" + strconv.Itoa(i), "width": 90, "height": 90}},
		}
		if i == 0 && caption != "" {
			fields["caption"] = caption
		}
		ids[i] = s.Post(chat, user, fields)
	}
	return ids
}

// Paste lets a user post a text of any length, split as Telegram's apps do: at
// most 4,096 units each, at a line's end or a space where there is one.
func (s *Server) Paste(chat, user int64, text string) []int {
	var ids []int
	for text != "" {
		cut, n := len(text), 0
		for i, r := range text {
			if n += utf16.RuneLen(r); n > mostUnits {
				cut = i
				break
			}
		}
		if cut < len(text) {
			if i := strings.LastIndexAny(text[:cut], "\n "); i > cut-cut/50 {
				cut = i + 1
			}
		}
		if said := strings.TrimSpace(text[:cut]); said != "" {
			ids = append(ids, s.Say(chat, user, said))
		}
		text = text[cut:]
	}
	return ids
}

func userFields(id int64) map[string]any {
	return map[string]any{"id": id, "is_bot": false, "first_name": "User " + strconv.FormatInt(id, 10)}
}

func chatFields(id int64) map[string]any { return map[string]any{"id": id, "type": chatType(id)} }

func titled(id int64, kind, title string) map[string]any {
	return map[string]any{"id": id, "type": kind, "title": title}
}

// Edit lets a user change the text of a message, as often as they like within a second.
func (s *Server) Edit(chat int64, id int, text string) {
	m := s.shown(chat, id)
	m["text"], m["edit_date"] = text, time.Now().Unix()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chat(chat).posts[id] = m
	if s.allowed != "" && !strings.Contains(s.allowed, `"edited_message"`) {
		return // the bot has not asked for edits
	}
	s.enqueue(map[string]any{"edited_message": m})
}
