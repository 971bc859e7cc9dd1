package slacktest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// mostText is how long a text may be before Slack refuses it.
const mostText = 40000

// mostEdited is how long a text may be that replaces another, in bytes.
const mostEdited = 4000

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
	reply(w, map[string]any{"user": map[string]any{
		"id": id, "team_id": team, "name": strings.ToLower(id), "real_name": u.Name,
		"profile": map[string]any{"display_name": u.Name, "real_name": u.Name},
		"is_bot":  u.Bot, "is_restricted": u.Guest, "is_ultra_restricted": false, "is_stranger": u.Stranger, "tz": u.TZ,
	}})
}

func (s *Server) conversations(w http.ResponseWriter, form url.Values) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := slices.DeleteFunc(slices.Sorted(maps.Keys(s.channels)), func(id string) bool { return s.absent[id] })
	from, to, next := paged(form, len(ids))
	all := []map[string]any{}
	for _, id := range ids[from:to] {
		one := map[string]any{"id": id, "is_im": id[0] == 'D'}
		if id[0] != 'D' {
			one["name"] = nameOf(id)
		}
		all = append(all, one)
	}
	reply(w, map[string]any{"channels": all, "response_metadata": map[string]any{"next_cursor": next}})
}

// nameOf is what people call a channel.
func nameOf(id string) string { return "name-of-" + strings.ToLower(id) }

// Join has people be in a channel. In one that nobody was made to join are all who have
// said something there.
func (s *Server) Join(channel string, users ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members[channel] = append(s.members[channel], users...)
	if s.channels[channel] == nil {
		s.channels[channel] = []*Message{}
	}
}

// listMembers lists who is in a channel that the bot is in.
func (s *Server) listMembers(w http.ResponseWriter, form url.Values) {
	s.mu.Lock()
	defer s.mu.Unlock()
	channel := form.Get("channel")
	said, known := s.channels[channel]
	if !known || s.absent[channel] {
		refuse(w, "channel_not_found")
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
	from, to, next := paged(form, len(all))
	reply(w, map[string]any{"members": all[from:to], "response_metadata": map[string]any{"next_cursor": next}})
}

// conversation tells of a channel whether the bot is in it. Of a private one in which it
// is not, and of what other people say to one another alone, Slack tells nothing.
func (s *Server) conversation(w http.ResponseWriter, id string) {
	s.mu.Lock()
	absent := s.absent[id]
	s.mu.Unlock()
	if id == "" || absent && id[0] != 'C' {
		refuse(w, "channel_not_found")
		return
	}
	reply(w, map[string]any{"channel": map[string]any{"id": id, "name": nameOf(id), "is_im": id[0] == 'D', "is_channel": id[0] == 'C', "is_member": !absent && id[0] != 'D'}})
}

// Expel has the bot be in a channel no more: it cannot write there.
func (s *Server) Expel(channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.absent[channel] = true
}

// paged is the page of so many that a call asks for, and the cursor of the next.
func paged(form url.Values, all int) (from, to int, next string) {
	limit, err := strconv.Atoi(formOf(form, "limit", "100"))
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

// history lists a channel, newest first, or a thread, oldest first and with its root.
func (s *Server) history(w http.ResponseWriter, form url.Values, replies bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	channel, root := form.Get("channel"), form.Get("ts")
	oldest, latest := form.Get("oldest"), formOf(form, "latest", "9999999999.999999")
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
		e := m.event()
		if m.User == Bot {
			e["text"] = named(m.Text)
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
		refuse(w, "thread_not_found")
		return
	}
	if !replies {
		slices.Reverse(found)
	}
	from, to, next := paged(form, len(found))
	reply(w, map[string]any{"messages": found[from:to], "has_more": next != "", "response_metadata": map[string]any{"next_cursor": next}})
}

// named is a text with its emoji by name, as Slack gives it back: a few of them.
func named(text string) string {
	return strings.NewReplacer("👀", ":eyes:", "✅", ":white_check_mark:", "🎉", ":tada:").Replace(text)
}

// replies are those of each message. s.mu is held.
func (s *Server) replies(channel string) map[string][]string {
	all := map[string][]string{}
	for _, m := range s.channels[channel] {
		if m.Thread != "" && m.Thread != m.TS {
			all[m.Thread] = append(all[m.Thread], m.TS)
		}
	}
	return all
}

// read takes a text and what belongs to it.
func (m *Message) read(form url.Values) {
	m.Text = form.Get("text")
	m.blocks = m.blocks.changed(form)
	m.Shown, m.Buttons = m.blocks.shown(m.Text)
	m.Unfurls = form.Get("unfurl_links") != "false" || form.Get("unfurl_media") != "false"
	m.Calls = form.Get("link_names") == "true" || form.Get("link_names") == "1"
	m.Markdown = strings.Join(m.blocks.markdown(), "\n")
	for _, all := range []string{"<!channel", "<!here", "<!everyone", "<!subteam"} {
		m.Calls = m.Calls || strings.Contains(m.Text, all) || strings.Contains(m.Markdown, all)
	}
	if data := form.Get("metadata"); data != "" {
		m.more = map[string]any{"metadata": json.RawMessage(data)}
		var key struct {
			Payload struct {
				Key string `json:"key"`
			} `json:"event_payload"`
		}
		_ = json.Unmarshal([]byte(data), &key) // not ours, then
		m.Key = key.Payload.Key
	}
}

// RefuseMarkdown has the workspace refuse markdown blocks, or take them again.
func (s *Server) RefuseMarkdown(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noMarkdown = on
}

func (s *Server) bad(m *Message) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return m.bad(s.noMarkdown)
}

// bad is what Slack refuses a message for; "" is nothing.
func (m *Message) bad(noMarkdown bool) string {
	switch {
	case noMarkdown && m.Markdown != "":
		return "invalid_blocks"
	case len(m.Text) > mostText:
		return "msg_too_long"
	case strings.TrimSpace(m.Text) == "" && m.File == "":
		return "no_text"
	case m.blocks.bad() != "":
		return m.blocks.bad()
	case !strings.ContainsAny(m.Channel[:1], "CDG"):
		return "channel_not_found"
	}
	return ""
}

func (s *Server) postMessage(w http.ResponseWriter, form url.Values) {
	m := &Message{Channel: formOf(form, "channel", "?"), User: Bot, Thread: form.Get("thread_ts")}
	if m.Channel[0] == 'U' {
		m.Channel = direct(m.Channel)
	}
	m.read(form)
	if code := s.bad(m); code != "" {
		refuse(w, code)
		return
	}
	s.mu.Lock()
	if s.absent[m.Channel] {
		s.mu.Unlock()
		refuse(w, "not_in_channel")
		return
	}
	if m.Thread != "" && s.find(m.Channel, m.Thread) == nil {
		s.mu.Unlock()
		refuse(w, "thread_not_found")
		return
	}
	put := s.say(m)
	s.mu.Unlock()
	s.announce(put) // an app is told of its own messages too
	reply(w, map[string]any{"channel": put.Channel, "ts": put.TS, "message": put.event()})
}

func (s *Server) postEphemeral(w http.ResponseWriter, form url.Values) {
	s.mu.Lock()
	defer s.mu.Unlock()
	said := Whisper{form.Get("channel"), form.Get("user"), form.Get("thread_ts"), form.Get("text")}
	switch {
	case said.User == "":
		refuse(w, "user_not_found")
	case len(s.channels[said.Channel]) == 0:
		refuse(w, "channel_not_found")
	case s.absent[said.Channel]:
		refuse(w, "not_in_channel")
	case strings.TrimSpace(said.Text) == "":
		refuse(w, "no_text")
	default:
		s.whispers = append(s.whispers, said)
		s.lastTS++
		reply(w, map[string]any{"message_ts": fmt.Sprintf("%d.%06d", s.lastTS/1e6, s.lastTS%1e6)})
	}
}

// say keeps a message of the bot's. s.mu is held.
func (s *Server) say(m *Message) Message {
	s.put(m)
	if p := s.panes[m.Channel+" "+m.Thread]; p != nil {
		p.Status = ""
	}
	close(s.wake)
	s.wake = make(chan struct{})
	return *m
}

func (s *Server) update(w http.ResponseWriter, form url.Values) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.find(form.Get("channel"), form.Get("ts"))
	switch {
	case m == nil:
		refuse(w, "message_not_found")
		return
	case m.User != Bot:
		refuse(w, "cant_update_message")
		return
	case m.Streaming:
		refuse(w, "streaming_state_conflict")
		return
	}
	now := *m
	now.read(form)
	if code := now.bad(s.noMarkdown); code != "" {
		refuse(w, code)
		return
	}
	if len(now.Text) > mostEdited {
		refuse(w, "msg_too_long")
		return
	}
	now.Edits++
	now.Changed = time.Now()
	*m = now
	reply(w, map[string]any{"channel": m.Channel, "ts": m.TS, "text": m.Text})
}

func (s *Server) react(w http.ResponseWriter, form url.Values) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := form.Get("channel") + " " + form.Get("timestamp")
	switch name := form.Get("name"); {
	case s.find(form.Get("channel"), form.Get("timestamp")) == nil:
		refuse(w, "message_not_found")
	case slices.Contains(s.marks[at], name):
		refuse(w, "already_reacted")
	default:
		s.marks[at] = append(s.marks[at], name)
		reply(w, map[string]any{})
	}
}

func (s *Server) prepareUpload(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastTS++
	id := fmt.Sprint("F", s.lastTS)
	s.uploads[id] = &Message{User: Bot, File: r.Form.Get("filename")}
	reply(w, map[string]any{"upload_url": "http://" + r.Host + "/upload/" + id, "file_id": id})
}

func (s *Server) upload(w http.ResponseWriter, r *http.Request) {
	file, _, err := r.FormFile("file")
	if err != nil {
		http.Error(w, "no file", http.StatusBadRequest)
		return
	}
	data, err := io.ReadAll(file)
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.uploads[strings.TrimPrefix(r.URL.Path, "/upload/")]
	if err != nil || m == nil {
		http.Error(w, "no such upload", http.StatusNotFound)
		return
	}
	m.Data = data
	_, _ = io.WriteString(w, "OK - "+strconv.Itoa(len(data))) // the caller may be gone
}

func (s *Server) completeUpload(w http.ResponseWriter, form url.Values) {
	var files []struct {
		ID    string `json:"id"`
		Title string `json:"title"`
	}
	if err := json.Unmarshal([]byte(form.Get("files")), &files); err != nil || len(files) != 1 {
		refuse(w, "invalid_arguments")
		return
	}
	s.mu.Lock()
	m := s.uploads[files[0].ID]
	if m == nil || m.Data == nil {
		s.mu.Unlock()
		refuse(w, "file_not_found")
		return
	}
	delete(s.uploads, files[0].ID)
	m.Channel, m.Thread, m.Text = formOf(form, "channel_id", "?"), form.Get("thread_ts"), form.Get("initial_comment")
	put := s.say(m)
	s.mu.Unlock()
	s.announce(put)
	reply(w, map[string]any{"files": files})
}
