package slacktest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxTextBytes is the maximum length of a message's text, in bytes.
const maxTextBytes = 40000

// maxEditedBytes is the maximum length of an edit's text, in bytes.
const maxEditedBytes = 4000

// userInfo answers users.info.
func (s *Server) userInfo(w http.ResponseWriter, id string) {
	s.mu.Lock()
	u, known := s.users[id]
	s.mu.Unlock()
	if !known {
		u = User{ID: id, Name: "Name of " + id}
	}
	team := Team
	if u.Stranger {
		team = "T0ELSEWHERE"
	}
	writeResult(w, map[string]any{"user": map[string]any{
		"id": id, "team_id": team, "name": strings.ToLower(id), "real_name": u.Name,
		"profile": map[string]any{"display_name": u.Name, "real_name": u.Name},
		"is_bot":  u.Bot, "is_restricted": u.Guest, "is_ultra_restricted": false, "is_stranger": u.Stranger, "tz": u.TZ,
	}})
}

// listConversations answers users.conversations: the channels that the bot is in.
func (s *Server) listConversations(w http.ResponseWriter, form url.Values) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := slices.DeleteFunc(slices.Sorted(maps.Keys(s.channels)), func(id string) bool { return s.absent[id] })
	from, to, next := pageBounds(form, len(ids))
	all := []map[string]any{}
	for _, id := range ids[from:to] {
		one := map[string]any{"id": id, "is_im": id[0] == 'D'}
		if id[0] != 'D' {
			one["name"] = channelName(id)
		}
		all = append(all, one)
	}
	writeResult(w, map[string]any{"channels": all, "response_metadata": map[string]any{"next_cursor": next}})
}

// channelName returns the name that people see for a channel.
func channelName(id string) string { return "name-of-" + strings.ToLower(id) }

// Join makes users members of a channel. If a channel has no such members, everybody who has written there is a
// member.
func (s *Server) Join(channel string, users ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members[channel] = append(s.members[channel], users...)
	if s.channels[channel] == nil {
		s.channels[channel] = []*Message{}
	}
}

// listMembers answers conversations.members for a channel that the bot is in.
func (s *Server) listMembers(w http.ResponseWriter, form url.Values) {
	s.mu.Lock()
	defer s.mu.Unlock()
	channel := form.Get("channel")
	said, known := s.channels[channel]
	if !known || s.absent[channel] {
		writeError(w, "channel_not_found")
		return
	}
	ids := map[string]bool{Bot: true}
	for _, user := range s.members[channel] {
		ids[user] = true
	}
	for _, m := range said {
		if len(s.members[channel]) == 0 && m.User != "" {
			ids[m.User] = true
		}
	}
	all := slices.Sorted(maps.Keys(ids))
	from, to, next := pageBounds(form, len(all))
	writeResult(w, map[string]any{"members": all[from:to], "response_metadata": map[string]any{"next_cursor": next}})
}

// conversationInfo answers conversations.info with a channel's name, and whether the bot is in it. Slack describes
// neither private channels that the bot is not in nor other people's chats.
func (s *Server) conversationInfo(w http.ResponseWriter, id string) {
	s.mu.Lock()
	absent := s.absent[id]
	s.mu.Unlock()
	if id == "" || absent && id[0] != 'C' {
		writeError(w, "channel_not_found")
		return
	}
	writeResult(w, map[string]any{"channel": map[string]any{"id": id, "name": channelName(id), "is_im": id[0] == 'D', "is_channel": id[0] == 'C', "is_member": !absent && id[0] != 'D'}})
}

// RemoveBot removes the bot from a channel: it can no longer write there.
func (s *Server) RemoveBot(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.absent[channel] = true
}

// pageBounds returns the bounds of the page that a call asks for, among all items, and the cursor of the next page;
// "" if it is the last.
func pageBounds(form url.Values, all int) (from, to int, next string) {
	limit, err := strconv.Atoi(formValue(form, "limit", "100"))
	if err != nil || limit < 1 {
		limit = 100
	}
	from, _ = strconv.Atoi(form.Get("cursor")) // 0 is the first page
	from = min(from, all)
	to = min(from+limit, all)
	if to < all {
		next = strconv.Itoa(to)
	}
	return from, to, next
}

// history answers with a channel, newest message first, or with a thread, oldest message first and including its
// first message.
func (s *Server) history(w http.ResponseWriter, form url.Values, replies bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	channel, root := form.Get("channel"), form.Get("ts")
	oldest, latest := form.Get("oldest"), formValue(form, "latest", "9999999999.999999")
	found := []map[string]any{}
	known := false
	answered := s.replies(channel)
	for _, m := range s.channels[channel] {
		known = known || m.TS == root
		isReply := m.Thread != "" && m.Thread != m.TS
		if replies && m.TS != root && m.Thread != root || !replies && isReply {
			continue
		}
		if (m.TS <= oldest || m.TS >= latest) && (!replies || m.TS != root) {
			continue
		}
		e := m.asJSON()
		if m.User == Bot {
			e["text"] = withEmojiNames(m.Text)
		}
		if form.Get("include_all_metadata") != "1" {
			delete(e, "metadata")
		}
		if all := answered[m.TS]; len(all) > 0 {
			e["thread_ts"], e["reply_count"], e["latest_reply"] = m.TS, len(all), all[len(all)-1]
		}
		found = append(found, e)
	}
	if replies && !known {
		writeError(w, "thread_not_found")
		return
	}
	if !replies {
		slices.Reverse(found)
	}
	from, to, next := pageBounds(form, len(found))
	writeResult(w, map[string]any{"messages": found[from:to], "has_more": next != "", "response_metadata": map[string]any{"next_cursor": next}})
}

// withEmojiNames replaces a few emojis by their names, as Slack returns them.
func withEmojiNames(text string) string {
	return strings.NewReplacer("👀", ":eyes:", "✅", ":white_check_mark:", "🎉", ":tada:").Replace(text)
}

// replies returns the ts of each message's replies. The caller holds s.mu.
func (s *Server) replies(channel string) map[string][]string {
	all := map[string][]string{}
	for _, m := range s.channels[channel] {
		if m.Thread != "" && m.Thread != m.TS {
			all[m.Thread] = append(all[m.Thread], m.TS)
		}
	}
	return all
}

// fillFrom sets a message's text and everything that belongs to it from a call.
func (m *Message) fillFrom(form url.Values) {
	m.Text = form.Get("text")
	m.blocks = m.blocks.changed(form)
	m.Shown, m.Buttons = m.blocks.shown(m.Text)
	m.ShowsPreviews = form.Get("unfurl_links") != "false" || form.Get("unfurl_media") != "false"
	m.NotifiesEverybody = form.Get("link_names") == "true" || form.Get("link_names") == "1"
	m.Markdown = strings.Join(m.blocks.markdown(), "\n")
	for _, all := range []string{"<!channel", "<!here", "<!everyone", "<!subteam"} {
		m.NotifiesEverybody = m.NotifiesEverybody || strings.Contains(m.Text, all) || strings.Contains(m.Markdown, all)
	}
	if data := form.Get("metadata"); data != "" {
		m.extraFields = map[string]any{"metadata": json.RawMessage(data)}
		var key struct {
			Payload struct {
				Key string `json:"key"`
			} `json:"event_payload"`
		}
		_ = json.Unmarshal([]byte(data), &key) // then it is not ours
		m.Key = key.Payload.Key
	}
}

// RefuseMarkdown makes the workspace refuse markdown blocks, or accept them again.
func (s *Server) RefuseMarkdown(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noMarkdown = on
}

// refusalCode returns the code with which this workspace refuses a message; "" if it accepts the
// message.
func (s *Server) refusalCode(m *Message) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return m.refusalCode(s.noMarkdown)
}

// refusalCode returns the code with which Slack refuses a message; "" if it accepts the
// message.
func (m *Message) refusalCode(noMarkdown bool) string {
	switch {
	case noMarkdown && m.Markdown != "":
		return "invalid_blocks"
	case len(m.Text) > maxTextBytes:
		return "msg_too_long"
	case strings.TrimSpace(m.Text) == "" && m.File == "":
		return "no_text"
	case m.blocks.refusalCode() != "":
		return m.blocks.refusalCode()
	case !strings.ContainsAny(m.Channel[:1], "CDG"):
		return "channel_not_found"
	}
	return ""
}

// postMessage answers chat.postMessage.
func (s *Server) postMessage(w http.ResponseWriter, form url.Values) {
	m := &Message{Channel: formValue(form, "channel", "?"), User: Bot, Thread: form.Get("thread_ts")}
	if m.Channel[0] == 'U' {
		m.Channel = direct(m.Channel)
	}
	m.fillFrom(form)
	if code := s.refusalCode(m); code != "" {
		writeError(w, code)
		return
	}
	s.mu.Lock()
	if s.absent[m.Channel] {
		s.mu.Unlock()
		writeError(w, "not_in_channel")
		return
	}
	if m.Thread != "" && s.find(m.Channel, m.Thread) == nil {
		s.mu.Unlock()
		writeError(w, "thread_not_found")
		return
	}
	put := s.storeSent(m)
	s.mu.Unlock()
	s.announce(put) // an app is told of its own messages too
	writeResult(w, map[string]any{"channel": put.Channel, "ts": put.TS, "message": put.asJSON()})
}

// postEphemeral answers chat.postEphemeral.
func (s *Server) postEphemeral(w http.ResponseWriter, form url.Values) {
	s.mu.Lock()
	defer s.mu.Unlock()
	said := Whisper{form.Get("channel"), form.Get("user"), form.Get("thread_ts"), form.Get("text")}
	switch {
	case said.User == "":
		writeError(w, "user_not_found")
	case len(s.channels[said.Channel]) == 0:
		writeError(w, "channel_not_found")
	case s.absent[said.Channel]:
		writeError(w, "not_in_channel")
	case strings.TrimSpace(said.Text) == "":
		writeError(w, "no_text")
	default:
		s.whispers = append(s.whispers, said)
		s.lastTS++
		writeResult(w, map[string]any{"message_ts": fmt.Sprintf("%d.%06d", s.lastTS/1e6, s.lastTS%1e6)})
	}
}

// storeSent stores one of the bot's messages. The caller holds s.mu.
func (s *Server) storeSent(m *Message) Message {
	s.store(m)
	if p := s.panes[m.Channel+" "+m.Thread]; p != nil {
		p.Status = ""
	}
	close(s.wake)
	s.wake = make(chan struct{})
	return *m
}

// update answers chat.update.
func (s *Server) update(w http.ResponseWriter, form url.Values) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.find(form.Get("channel"), form.Get("ts"))
	switch {
	case m == nil:
		writeError(w, "message_not_found")
		return
	case m.User != Bot:
		writeError(w, "cant_update_message")
		return
	case m.Streaming:
		writeError(w, "streaming_state_conflict")
		return
	}
	now := *m
	now.fillFrom(form)
	if code := now.refusalCode(s.noMarkdown); code != "" {
		writeError(w, code)
		return
	}
	if len(now.Text) > maxEditedBytes {
		writeError(w, "msg_too_long")
		return
	}
	now.Edits++
	now.Changed = time.Now()
	*m = now
	writeResult(w, map[string]any{"channel": m.Channel, "ts": m.TS, "text": m.Text})
}

// react answers reactions.add.
func (s *Server) react(w http.ResponseWriter, form url.Values) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := form.Get("channel") + " " + form.Get("timestamp")
	switch name := form.Get("name"); {
	case s.find(form.Get("channel"), form.Get("timestamp")) == nil:
		writeError(w, "message_not_found")
	case slices.Contains(s.reactions[at], name):
		writeError(w, "already_reacted")
	default:
		s.reactions[at] = append(s.reactions[at], name)
		writeResult(w, map[string]any{})
	}
}
