package discordtest

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The bot, and the server that it is in.
const (
	Bot     = "4242"
	BotRole = "4243" // the role that the server gave it
	Guild   = "900"
)

func bot() map[string]any { return map[string]any{"id": Bot, "username": "parley", "bot": true} }

// The types of places.
const (
	TextChannel  = 0
	DirectChat   = 1
	PublicThread = 11
	Forum        = 15
)

// A Place is a channel of the server, a thread in one, or somebody's chat with the bot.
type Place struct {
	ID     string
	Type   int
	Name   string
	Parent string // of a thread
	Last   string // the id of the newest message

	rules []map[string]any // who may do more or less there than in the server
}

func (p Place) wire() map[string]any {
	w := map[string]any{"id": p.ID, "type": p.Type}
	if p.Type != DirectChat {
		w["guild_id"], w["name"] = Guild, p.Name
	}
	if p.Parent != "" {
		w["parent_id"] = p.Parent
	}
	if p.Last != "" {
		w["last_message_id"] = p.Last
	}
	if p.rules != nil {
		w["permission_overwrites"] = p.rules
	}
	return w
}

// AddChannel adds a channel to the server.
func (s *Server) AddChannel(id, name string) {
	s.add(Place{ID: id, Type: TextChannel, Name: name}, "CHANNEL_CREATE")
}

// AddForum adds a forum to the server.
func (s *Server) AddForum(id, name string) {
	s.add(Place{ID: id, Type: Forum, Name: name}, "CHANNEL_CREATE")
}

// AddThread adds a thread to a channel of the server, or a post to a forum.
func (s *Server) AddThread(id, parent, name string) {
	s.add(Place{ID: id, Type: PublicThread, Parent: parent, Name: name}, "THREAD_CREATE")
}

func (s *Server) add(p Place, event string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places[p.ID] = p
	told := p.wire()
	told["newly_created"] = true
	s.gateway.announce(event, told)
}

// Hide has the bot read no history of a channel.
func (s *Server) Hide(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hidden[channel] = true
}

// Say has a person write into a channel, and returns the message's id. A channel that
// was not added is the person's own chat with the bot.
func (s *Server) Say(channel, user, text string) string {
	return s.Post(channel, user, map[string]any{"content": text})
}

// Reply is Say in answer to a message.
func (s *Server) Reply(channel, user, message, text string) string {
	return s.Post(channel, user, map[string]any{"content": text, "type": 19, "message_reference": map[string]any{"message_id": message, "channel_id": channel}})
}

// Post has a person put a message of any kind into a channel: the fields are Discord's.
// It returns the message's id.
func (s *Server) Post(channel, user string, fields map[string]any) string {
	m := &Message{Channel: channel, Author: user, more: fields}
	m.Text, _ = fields["content"].(string) // "" is as good as left out
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.places[channel]; !known {
		s.places[channel] = Place{ID: channel, Type: DirectChat}
	}
	s.put(m)
	s.gateway.announce("MESSAGE_CREATE", s.event(m))
	return m.ID
}

// Rewrite has a person change what they have said.
func (s *Server) Rewrite(channel, id, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.find(channel, id)
	m.Text, m.Changed = text, time.Now()
	m.more["content"], m.more["edited_timestamp"] = text, m.Changed.UTC().Format(time.RFC3339Nano)
	s.gateway.announce("MESSAGE_UPDATE", s.event(m))
}

// Remove has a person delete what they have said.
func (s *Server) Remove(channel, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.messages[channel] = slices.DeleteFunc(s.messages[channel], func(m *Message) bool { return m.ID == id })
	s.gateway.announce("MESSAGE_DELETE", map[string]any{"id": id, "channel_id": channel})
}

// Since counts what people have said since the thing with that id.
func (s *Server) Since(id uint64) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, all := range s.messages {
		for _, m := range all {
			if m.Author != Bot && number(m.ID) > id {
				n++
			}
		}
	}
	return n
}

// wire is a message as Discord lists it. s.mu is held.
func (s *Server) wire(m *Message) map[string]any {
	author := map[string]any{"id": m.Author, "username": "user" + m.Author}
	if m.Author == Bot {
		author = bot()
	}
	w := map[string]any{
		"id": m.ID, "channel_id": m.Channel, "content": m.Text, "author": author, "timestamp": m.At.UTC().Format("2006-01-02T15:04:05.000000+00:00"),
		"edited_timestamp": nil, "type": 0, "flags": m.Flags, "mentions": mentions(m.Text), "mention_roles": []string{}, "attachments": []any{}, "embeds": []any{},
		"tts": false, "pinned": false, "mention_everyone": m.Calls,
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
	maps.Copy(w, m.more)
	if ref, ok := w["message_reference"].(map[string]any); ok && w["type"] == 19 {
		if answered := s.find(m.Channel, ref["message_id"].(string)); answered != nil {
			w["referenced_message"] = s.wire(answered)
		}
	}
	return w
}

// mentions are the users whom a text names.
func mentions(text string) []any {
	all := []any{}
	if strings.Contains(text, "<@"+Bot+">") || strings.Contains(text, "<@!"+Bot+">") {
		all = append(all, bot())
	}
	return all
}

// event is a message as an event tells of it: with the server, too. s.mu is held.
func (s *Server) event(m *Message) map[string]any {
	w := s.wire(m)
	if p := s.places[m.Channel]; p.ID != "" && p.Type != DirectChat {
		w["guild_id"] = Guild
		w["member"] = map[string]any{"nick": nil, "roles": []string{}}
	}
	return w
}

// guild is the server as an event tells of it. s.mu is held.
func (s *Server) guild() map[string]any {
	channels, threads := []any{}, []any{}
	for _, p := range s.places {
		switch p.Type {
		case DirectChat:
		case PublicThread:
			threads = append(threads, p.wire())
		default:
			channels = append(channels, p.wire())
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

// File keeps a file, and returns it as it stands in the "attachments" of a message.
func (s *Server) File(name, kind string, data []byte) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.newID()
	s.files[id] = data
	return map[string]any{
		"id": id, "filename": name, "content_type": kind, "size": len(data), "url": "http://" + s.listener.Addr().String() + "/files/" + id + "?ex=1&hm=2",
	}
}

// Detach has every file be gone that people have sent.
func (s *Server) Detach() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files = map[string][]byte{}
}

// giveFile gives a file, to whoever has its address. A token has no business there.
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
	if f := s.begin("GET files", id); f != nil {
		f.act(w, r, do)
		return
	}
	do(w, r)
}

// tell tells of one message.
func (s *Server) tell(w http.ResponseWriter, channel, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.find(channel, id)
	if m == nil {
		refuse(w, http.StatusNotFound, 10008, "Unknown Message")
		return
	}
	answer(w, http.StatusOK, s.wire(m))
}

// Permit sets what the bot may do in the server: everything, unless it is set.
func (s *Server) Permit(permissions int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.permissions = permissions
}

func (s *Server) guilds() []any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return []any{map[string]any{"id": Guild, "name": "Home", "permissions": strconv.FormatInt(s.permissions, 10)}}
}

func (s *Server) tellPlace(w http.ResponseWriter, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.places[id]
	if !ok {
		refuse(w, http.StatusNotFound, 10003, "Unknown Channel")
		return
	}
	if p.hides() {
		refuse(w, http.StatusForbidden, 50001, "Missing Access")
		return
	}
	answer(w, http.StatusOK, p.wire())
}

// What a member may do.
const (
	viewChannel = 1 << 10
	readHistory = 1 << 16
)

// Bar has a person not see a channel of the server. All others are members and do, but Stranger.
func (s *Server) Bar(channel, user string) { s.Deny(channel, user, viewChannel) }

// Deny takes permissions away in a channel from a person, or from a role: Guild is that of
// everybody.
func (s *Server) Deny(channel, whom string, permissions int64) {
	s.rule(channel, whom, 0, permissions)
}

// Allow gives what Deny takes away.
func (s *Server) Allow(channel, whom string, permissions int64) {
	s.rule(channel, whom, permissions, 0)
}

func (s *Server) rule(channel, whom string, allow, deny int64) {
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

// hides tells whether the bot may not see a place.
func (p Place) hides() bool {
	for _, r := range p.rules {
		if deny, _ := strconv.ParseInt(r["deny"].(string), 10, 64); deny&viewChannel != 0 && (r["id"] == Bot || r["id"] == BotRole) {
			return true
		}
	}
	return false
}

// Stranger is somebody who is not in the server.
const Stranger = "999999"

// tellGuild tells of the server, of its channels, or of somebody in it.
func (s *Server) tellGuild(w http.ResponseWriter, parts []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.guild()
	switch {
	case len(parts) == 2:
		all["owner_id"] = "1"
		all["roles"] = []any{
			map[string]any{"id": Guild, "name": "@everyone", "permissions": strconv.Itoa(viewChannel | readHistory)},
			map[string]any{"id": BotRole, "name": "Parley", "permissions": strconv.FormatInt(s.permissions, 10)},
		}
		answer(w, http.StatusOK, all)
	case len(parts) == 3 && parts[2] == "channels":
		answer(w, http.StatusOK, all["channels"])
	case len(parts) == 4 && parts[2] == "members" && parts[3] != Stranger:
		roles := []any{}
		if parts[3] == Bot {
			roles = append(roles, BotRole)
		}
		answer(w, http.StatusOK, map[string]any{"user": map[string]any{"id": parts[3]}, "roles": roles})
	case len(parts) == 4 && parts[2] == "members":
		refuse(w, http.StatusNotFound, 10007, "Unknown Member")
	default:
		refuse(w, http.StatusNotFound, 0, "404: Not Found")
	}
}
