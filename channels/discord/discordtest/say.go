package discordtest

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The ids of the bot, its role, and the server that it is in.
const (
	Bot     = "4242"
	BotRole = "4243" // the role that the server gave it
	Guild   = "900"
)

// bot returns the bot's user in Discord's JSON.
func bot() map[string]any { return map[string]any{"id": Bot, "username": "parley", "bot": true} }

// The types of places.
const (
	TextChannel  = 0
	DirectChat   = 1
	PublicThread = 11
	InvitedOnly  = 12 // a thread that only people who were invited can read
	Forum        = 15
)

// A Place is one of the server's channels, a thread in one, or somebody's private chat with the bot.
type Place struct {
	ID            string
	Type          int
	Name          string
	Parent        string // the channel of a thread
	NewestMessage string // the id of the newest message

	rules []map[string]any // permissions that differ from the server's
}

// asJSON returns a place in Discord's JSON.
func (p Place) asJSON() map[string]any {
	w := map[string]any{"id": p.ID, "type": p.Type}
	if p.Type != DirectChat {
		w["guild_id"], w["name"] = Guild, p.Name
	}
	if p.Parent != "" {
		w["parent_id"] = p.Parent
	}
	w["last_message_id"] = nil // Discord writes this for a place in which nothing has been said
	if p.NewestMessage != "" {
		w["last_message_id"] = p.NewestMessage // even if that message has been deleted since
	}
	if p.rules != nil {
		w["permission_overwrites"] = p.rules
	}
	return w
}

// AddChannel adds a channel to the server.
func (s *Server) AddChannel(id, name string) {
	s.addPlace(Place{ID: id, Type: TextChannel, Name: name}, "CHANNEL_CREATE")
}

// AddForum adds a forum to the server.
func (s *Server) AddForum(id, name string) {
	s.addPlace(Place{ID: id, Type: Forum, Name: name}, "CHANNEL_CREATE")
}

// AddThread adds a thread to one of the server's channels, or a post to a forum.
func (s *Server) AddThread(id, parent, name string) {
	s.addPlace(Place{ID: id, Type: PublicThread, Parent: parent, Name: name}, "THREAD_CREATE")
}

// AddPrivateThread adds a thread to one of the server's channels, for people who are invited to it.
func (s *Server) AddPrivateThread(id, parent, name string) {
	s.addPlace(Place{ID: id, Type: InvitedOnly, Parent: parent, Name: name}, "THREAD_CREATE")
}

// addPlace adds a place and announces it to the bot with that event.
func (s *Server) addPlace(p Place, event string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places[p.ID] = p
	told := p.asJSON()
	told["newly_created"] = true
	s.gateway.announce(event, told)
}

// HideHistory forbids the bot to read a channel's history.
func (s *Server) HideHistory(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hidden[channel] = true
}

// Say writes a message as that user and returns its id. A channel that was not added counts as the user's private
// chat with the bot.
func (s *Server) Say(channel, user, text string) string {
	return s.Post(channel, user, map[string]any{"content": text})
}

// Reply writes a message as that user, in reply to another, and returns its id.
func (s *Server) Reply(channel, user, message, text string) string {
	return s.Post(channel, user, map[string]any{"content": text, "type": 19, "message_reference": map[string]any{"message_id": message, "channel_id": channel}})
}

// Post writes a message of any kind as that user, with these fields of Discord's JSON. It returns
// the message's id.
func (s *Server) Post(channel, user string, fields map[string]any) string {
	m := &Message{Channel: channel, Author: user, extraFields: fields}
	m.Text, _ = fields["content"].(string) // "" means the same as none
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.places[channel]; !known {
		s.places[channel] = Place{ID: channel, Type: DirectChat}
	}
	s.store(m)
	s.gateway.announce("MESSAGE_CREATE", s.eventJSON(m))
	return m.ID
}

// Rewrite changes the text of a person's message.
func (s *Server) Rewrite(channel, id, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.find(channel, id)
	m.Text, m.Changed = text, time.Now()
	m.extraFields["content"], m.extraFields["edited_timestamp"] = text, m.Changed.UTC().Format(time.RFC3339Nano)
	s.gateway.announce("MESSAGE_UPDATE", s.eventJSON(m))
}

// Remove deletes a person's message.
func (s *Server) Remove(channel, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.messages[channel] = slices.DeleteFunc(s.messages[channel], func(m *Message) bool { return m.ID == id })
	s.gateway.announce("MESSAGE_DELETE", map[string]any{"id": id, "channel_id": channel})
}

// CountSince counts the messages that people have written since the object with that id was created.
func (s *Server) CountSince(id uint64) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, all := range s.messages {
		for _, m := range all {
			if m.Author != Bot && parseID(m.ID) > id {
				n++
			}
		}
	}
	return n
}

// messageJSON returns a message as Discord lists it in history. The caller holds s.mu.
func (s *Server) messageJSON(m *Message) map[string]any {
	author := map[string]any{"id": m.Author, "username": "user" + m.Author}
	if m.Author == Bot {
		author = bot()
	}
	w := map[string]any{
		"id": m.ID, "channel_id": m.Channel, "content": m.Text, "author": author, "timestamp": m.At.UTC().Format("2006-01-02T15:04:05.000000+00:00"),
		"edited_timestamp": nil, "type": 0, "flags": m.Flags, "mentions": mentions(m.Text), "mention_roles": []string{}, "attachments": []any{}, "embeds": []any{},
		"tts": false, "pinned": false, "mention_everyone": m.NotifiesPeople,
	}
	if strings.Contains(m.Text, "<@&"+BotRole+">") {
		w["mention_roles"] = []string{BotRole}
	}
	if m.Nonce != "" {
		w["nonce"] = m.Nonce
	}
	if m.ReplyTo != "" {
		w["type"], w["message_reference"] = 19, map[string]any{"message_id": m.ReplyTo, "channel_id": m.Channel}
	}
	maps.Copy(w, m.extraFields)
	if ref, ok := w["message_reference"].(map[string]any); ok && w["type"] == 19 {
		if answered := s.find(m.Channel, ref["message_id"].(string)); answered != nil {
			w["referenced_message"] = s.messageJSON(answered)
		}
	}
	return w
}

// mentions returns the users that a text mentions; it only recognizes the bot.
func mentions(text string) []any {
	all := []any{}
	if strings.Contains(text, "<@"+Bot+">") || strings.Contains(text, "<@!"+Bot+">") {
		all = append(all, bot())
	}
	return all
}

// eventJSON returns a message as an event describes it: with the server, and with the sender's membership in it.
// The caller holds s.mu.
func (s *Server) eventJSON(m *Message) map[string]any {
	w := s.messageJSON(m)
	if p := s.places[m.Channel]; p.ID != "" && p.Type != DirectChat {
		w["guild_id"] = Guild
		w["member"] = map[string]any{"nick": nil, "roles": []string{}}
	}
	return w
}

// guildJSON returns the server as an event describes it. The caller holds s.mu.
func (s *Server) guildJSON() map[string]any {
	channels, threads := []any{}, []any{}
	for _, p := range s.places {
		switch p.Type {
		case DirectChat:
		case PublicThread:
			threads = append(threads, p.asJSON())
		default:
			channels = append(channels, p.asJSON())
		}
	}
	return map[string]any{
		"id": Guild, "name": "Home", "channels": channels, "threads": threads,
		"roles": []any{
			map[string]any{"id": Guild, "name": "@everyone"},
			map[string]any{"id": BotRole, "name": "Parley", "tags": map[string]any{"bot_id": Bot}},
		},
	}
}

// AddFile stores a file, and returns its entry for the "attachments" of a message.
func (s *Server) AddFile(name, kind string, data []byte) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.newID()
	s.files[id] = data
	return map[string]any{
		"id": id, "filename": name, "content_type": kind, "size": len(data), "url": "http://" + s.listener.Addr().String() + "/files/" + id + "?ex=1&hm=2",
	}
}

// Detach deletes all files that people have sent.
func (s *Server) Detach() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files = map[string][]byte{}
}

// giveFile serves a file to anybody who has its address. It refuses requests that contain a token.
func (s *Server) giveFile(w http.ResponseWriter, r *http.Request, id string) {
	do := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		data, ok := s.files[id]
		s.mu.Unlock()
		if !ok || r.Header.Get("Authorization") != "" || r.URL.Query().Get("hm") == "" {
			http.Error(w, "This content is no longer available.", http.StatusNotFound)
			return
		}
		_, _ = w.Write(data) // the caller may be gone
	})
	if f := s.countCall("GET files", id); f != nil {
		f.act(w, r, do)
		return
	}
	do(w, r)
}

// getMessage answers GET of one message.
func (s *Server) getMessage(w http.ResponseWriter, channel, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.find(channel, id)
	if m == nil {
		writeError(w, http.StatusNotFound, 10008, "Unknown Message")
		return
	}
	writeJSON(w, http.StatusOK, s.messageJSON(m))
}

// SetPermissions sets what the bot may do in the server. Before the first call, it may do everything except
// administrate.
func (s *Server) SetPermissions(permissions int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.permissions = permissions
}

// listGuilds returns the servers that the bot is in, with its permissions there.
func (s *Server) listGuilds() []any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return []any{map[string]any{"id": Guild, "name": "Home", "permissions": strconv.FormatInt(s.permissions, 10)}}
}

// getPlace answers GET of one channel.
func (s *Server) getPlace(w http.ResponseWriter, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.places[id]
	if !ok {
		writeError(w, http.StatusNotFound, 10003, "Unknown Channel")
		return
	}
	if p.hidesFromBot() {
		writeError(w, http.StatusForbidden, 50001, "Missing Access")
		return
	}
	writeJSON(w, http.StatusOK, p.asJSON())
}

// The permissions that the fake itself knows about.
const (
	viewChannel = 1 << 10
	readHistory = 1 << 16
)

// HideFrom hides one of the server's channels from a person. Every user except Stranger is a member, and may see
// all channels that are not hidden.
func (s *Server) HideFrom(channel, user string) { s.Deny(channel, user, viewChannel) }

// Deny takes permissions in a channel away from a person or a role; the id Guild means the role that everybody has.
func (s *Server) Deny(channel, whom string, permissions int64) {
	s.addRule(channel, whom, 0, permissions)
}

// Allow grants permissions in a channel to a person or a role.
func (s *Server) Allow(channel, whom string, permissions int64) {
	s.addRule(channel, whom, permissions, 0)
}

// addRule adds a permission overwrite to a channel.
func (s *Server) addRule(channel, whom string, allow, deny int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := 1 // a member
	if whom == Guild || whom == BotRole {
		kind = 0
	}
	p := s.places[channel]
	p.rules = append(p.rules, map[string]any{"id": whom, "type": kind, "allow": strconv.FormatInt(allow, 10), "deny": strconv.FormatInt(deny, 10)})
	s.places[channel] = p
}

// hidesFromBot reports whether the bot may not see a place.
func (p Place) hidesFromBot() bool {
	for _, r := range p.rules {
		if deny, _ := strconv.ParseInt(r["deny"].(string), 10, 64); deny&viewChannel != 0 && (r["id"] == Bot || r["id"] == BotRole) {
			return true
		}
	}
	return false
}

// Stranger is a user who is not in the server.
const Stranger = "999999"

// getGuild answers GET of the server, of its channels, or of one member.
func (s *Server) getGuild(w http.ResponseWriter, parts []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.guildJSON()
	switch {
	case len(parts) == 2:
		all["owner_id"] = "1"
		all["roles"] = []any{
			map[string]any{"id": Guild, "name": "@everyone", "permissions": strconv.Itoa(viewChannel | readHistory)},
			map[string]any{"id": BotRole, "name": "Parley", "permissions": strconv.FormatInt(s.permissions, 10)},
		}
		writeJSON(w, http.StatusOK, all)
	case len(parts) == 3 && parts[2] == "channels":
		writeJSON(w, http.StatusOK, all["channels"])
	case len(parts) == 4 && parts[2] == "members" && parts[3] != Stranger:
		roles := []any{}
		if parts[3] == Bot {
			roles = append(roles, BotRole)
		}
		writeJSON(w, http.StatusOK, map[string]any{"user": map[string]any{"id": parts[3]}, "roles": roles})
	case len(parts) == 4 && parts[2] == "members":
		writeError(w, http.StatusNotFound, 10007, "Unknown Member")
	default:
		writeError(w, http.StatusNotFound, 0, "404: Not Found")
	}
}
