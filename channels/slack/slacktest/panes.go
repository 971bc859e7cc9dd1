package slacktest

import (
	"encoding/json"
	"net/http"
	"net/url"
)

// What Slack accepts: the blocks in a home's view, and the prompts in a pane.
const (
	maxViewBlocks = 100
	maxPrompts    = 4
)

// A Prompt is a question that a pane suggests.
type Prompt struct {
	Title   string `json:"title"`
	Message string `json:"message"`
}

// A Pane is the thread that a user opens beside a channel.
type Pane struct {
	Title    string
	Above    string // the title that is shown above the prompts
	Prompts  []Prompt
	Statuses []string // every status that was set, in order
	// Status is the status that is shown. One of the bot's messages removes it; an edit does not.
	Status string
}

// OpenHome opens the app's tab with that name, "home" or "messages", as that user.
func (s *Server) OpenHome(user, tab string) {
	s.SendEvent(map[string]any{"type": "app_home_opened", "user": user, "channel": direct(user), "tab": tab, "event_ts": s.newTS()})
}

// OpenPane opens the app's pane beside a channel as that user, and returns the ts of its
// thread.
func (s *Server) OpenPane(user, beside string) (thread string) {
	m := &Message{Channel: direct(user), User: Bot, Text: "New Assistant Thread", extraFields: map[string]any{"subtype": "assistant_app_thread"}}
	s.mu.Lock()
	s.store(m)
	s.mu.Unlock()
	s.announcePane("assistant_thread_started", user, m.TS, beside)
	return m.TS
}

// SwitchChannel opens another channel next to the pane with that thread, as that user.
func (s *Server) SwitchChannel(user, thread, beside string) {
	s.announcePane("assistant_thread_context_changed", user, thread, beside)
}

// announcePane sends the app an event about a pane.
func (s *Server) announcePane(kind, user, thread, beside string) {
	at := map[string]any{}
	if beside != "" {
		at = map[string]any{"channel_id": beside, "team_id": Team}
	}
	s.SendEvent(map[string]any{"type": kind, "event_ts": s.newTS(), "assistant_thread": map[string]any{
		"user_id": user, "channel_id": direct(user), "thread_ts": thread, "context": at,
	}})
}

// Home returns what a user sees in the app's home; "" before anything was shown there.
func (s *Server) Home(user string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.homes[user]
}

// Pane returns what a pane's thread shows; for any other thread, it returns only the status.
func (s *Server) Pane(channel, thread string) Pane {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.panes[channel+" "+thread]; p != nil {
		return *p
	}
	return Pane{}
}

// publishView answers views.publish: it shows a view in a user's home.
func (s *Server) publishView(w http.ResponseWriter, r *http.Request) {
	var call struct {
		User string `json:"user_id"`
		View struct {
			Type   string  `json:"type"`
			Blocks []block `json:"blocks"`
		} `json:"view"`
	}
	err := json.NewDecoder(r.Body).Decode(&call)
	view := layout{Blocks: call.View.Blocks}
	bad := err != nil || call.User == "" || call.View.Type != "home" || len(view.Blocks) > maxViewBlocks
	for _, b := range view.Blocks { // each separately: the limit for all together is a message's
		bad = bad || layout{Blocks: []block{b}}.refusalCode() != "" || b.Type != "section"
	}
	if bad {
		writeError(w, "invalid_arguments")
		return
	}
	shown, _ := view.shown("")
	s.mu.Lock()
	s.homes[call.User] = shown
	s.mu.Unlock()
	writeResult(w, map[string]any{"view": map[string]any{"id": "V1", "type": "home"}})
}

// setPane answers the methods assistant.threads.….
func (s *Server) setPane(w http.ResponseWriter, form url.Values, method string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	channel, thread := form.Get("channel_id"), form.Get("thread_ts")
	root := s.find(channel, thread)
	if len(s.channels[channel]) == 0 {
		writeError(w, "channel_not_found")
		return
	}
	isPane := root != nil && root.extraFields["subtype"] == "assistant_app_thread"
	if root == nil || method != "assistant.threads.setStatus" && !isPane {
		writeError(w, "invalid_thread_ts")
		return
	}
	at := channel + " " + thread
	if s.panes[at] == nil {
		s.panes[at] = &Pane{}
	}
	p := s.panes[at]
	switch method {
	case "assistant.threads.setStatus":
		p.Status = form.Get("status")
		p.Statuses = append(p.Statuses, p.Status)
	case "assistant.threads.setTitle":
		p.Title = form.Get("title")
	default:
		var prompts []Prompt
		if json.Unmarshal([]byte(form.Get("prompts")), &prompts) != nil || len(prompts) == 0 || len(prompts) > maxPrompts {
			writeError(w, "invalid_arguments")
			return
		}
		p.Above, p.Prompts = form.Get("title"), prompts
	}
	writeResult(w, map[string]any{})
}
