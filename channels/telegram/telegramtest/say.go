package telegramtest

import (
	"maps"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
)

// maxKeptPosts is how many of a chat's newest posts can be replied to.
const maxKeptPosts = 256

// Say writes a message as that user and returns its id. A chat with a negative id is a group.
func (s *Server) Say(chat, user int64, text string) int {
	return s.Post(chat, user, map[string]any{"text": text})
}

// Post writes a message of any kind as that user: fields are those of Telegram's JSON, and
// may replace the usual ones. It returns the message's id.
func (s *Server) Post(chat, user int64, fields map[string]any) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.findChat(chat)
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
	delete(c.posts, id-maxKeptPosts)
	s.enqueue(map[string]any{"message": m})
	return id
}

// Reply writes a reply to a message in the chat as that user. The update contains that message, but not the one
// that that message replies to.
func (s *Server) Reply(chat, user int64, to int, fields map[string]any) int {
	answered := s.messageJSON(chat, to)
	delete(answered, "reply_to_message")
	all := map[string]any{"reply_to_message": answered}
	maps.Copy(all, fields)
	return s.Post(chat, user, all)
}

// messageJSON returns a message in a chat as updates show it. It panics if there is no such message.
func (s *Server) messageJSON(chat int64, id int) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.findChat(chat)
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

// Forward forwards a message as that user. The origin is one that FromUser, FromHidden, FromGroup
// or FromChannel has returned; fields are the content.
func (s *Server) Forward(chat, user int64, origin, fields map[string]any) int {
	all := maps.Clone(fields)
	all["forward_origin"] = origin
	return s.Post(chat, user, all)
}

// FromUser returns the origin of a message that a user sent at that time.
func FromUser(user int64, at time.Time) map[string]any {
	return map[string]any{"type": "user", "date": at.Unix(), "sender_user": userFields(user)}
}

// FromHidden returns the origin of a message from somebody who hides their account from the recipients of forwarded
// messages.
func FromHidden(name string, at time.Time) map[string]any {
	return map[string]any{"type": "hidden_user", "date": at.Unix(), "sender_user_name": name}
}

// FromGroup returns the origin of a message in the name of a group.
func FromGroup(chat int64, title string, at time.Time) map[string]any {
	return map[string]any{"type": "chat", "date": at.Unix(), "sender_chat": titledChat(chat, "supergroup", title)}
}

// FromChannel returns the origin of a channel's post, which may be signed.
func FromChannel(chat int64, title, signature string, at time.Time) map[string]any {
	origin := map[string]any{"type": "channel", "date": at.Unix(), "message_id": 1, "chat": titledChat(chat, "channel", title)}
	if signature != "" {
		origin["author_signature"] = signature
	}
	return origin
}

// Album posts several pictures together as that user: each is a message, and the first one has the caption.
func (s *Server) Album(chat, user int64, caption string, pictures int) []int {
	group := strconv.FormatInt(time.Now().UnixNano(), 10)
	ids := make([]int, pictures)
	for i := range ids {
		s.storePixel("p" + strconv.Itoa(i))
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

// Paste writes a text of any length as that user, split as Telegram's apps split it: into messages of at most 4,096
// units, at the end of a line or a space if there is one.
func (s *Server) Paste(chat, user int64, text string) []int {
	var ids []int
	for text != "" {
		cut, n := len(text), 0
		for i, r := range text {
			if n += utf16.RuneLen(r); n > maxTextUnits {
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

// userFields returns a user in Telegram's JSON.
func userFields(id int64) map[string]any {
	return map[string]any{"id": id, "is_bot": false, "first_name": "User " + strconv.FormatInt(id, 10)}
}

// chatFields returns a chat in Telegram's JSON.
func chatFields(id int64) map[string]any { return map[string]any{"id": id, "type": chatType(id)} }

// titledChat returns a chat with a title in Telegram's JSON.
func titledChat(id int64, kind, title string) map[string]any {
	return map[string]any{"id": id, "type": kind, "title": title}
}

// Edit changes the text of a user's message. That can happen several times within one second.
func (s *Server) Edit(chat int64, id int, text string) {
	m := s.messageJSON(chat, id)
	m["text"], m["edit_date"] = text, time.Now().Unix()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.findChat(chat).posts[id] = m
	if s.allowedUpdates != "" && !strings.Contains(s.allowedUpdates, `"edited_message"`) {
		return // the bot has not asked for edits
	}
	s.enqueue(map[string]any{"edited_message": m})
}
