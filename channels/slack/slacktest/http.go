package slacktest

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
)

// ServeHTTP answers one call to the Web API, a socket, an upload or download, or a control path.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasPrefix(r.URL.Path, "/_control/"):
		s.control(w, r, strings.TrimPrefix(r.URL.Path, "/_control/"))
	case strings.HasPrefix(r.URL.Path, "/upload/"):
		s.upload(w, r)
	case strings.HasPrefix(r.URL.Path, "/files-pri/"):
		s.serveFile(w, r)
	case r.URL.Path == "/link":
		s.sockets.serve(w, r)
	case strings.HasPrefix(r.URL.Path, "/api/"):
		s.api(w, r, strings.TrimPrefix(r.URL.Path, "/api/"))
	default:
		http.NotFound(w, r)
	}
}

// api checks a call's token, scopes and faults, and routes it.
func (s *Server) api(w http.ResponseWriter, r *http.Request, method string) {
	if err := r.ParseForm(); err != nil && r.ContentLength != 0 {
		writeError(w, "invalid_form_data")
		return
	}
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if token == "" {
		token = r.Form.Get("token")
	}
	want := s.botToken
	if method == "apps.connections.open" {
		want = s.appToken
	}
	if token != want {
		writeError(w, "invalid_auth")
		return
	}
	do := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.route(w, r, method) })
	channel := r.Form.Get("channel")
	if channel == "" {
		channel = r.Form.Get("channel_id")
	}
	if method == "users.info" {
		channel = r.Form.Get("user")
	}
	if f := s.countCall(method, channel); f != nil {
		f.act(w, r, do)
		return
	}
	if s.refuseMissingScope(w, method, channel) {
		return
	}
	do(w, r)
}

// route passes a call to the handler of its method.
func (s *Server) route(w http.ResponseWriter, r *http.Request, method string) {
	switch method {
	case "auth.test":
		writeResult(w, map[string]any{"team_id": Team, "team": "Team", "user_id": Bot, "user": "parley", "bot_id": botID, "url": "https://team.slack.com/"})
	case "apps.connections.open":
		writeResult(w, map[string]any{"url": "ws://" + r.Host + "/link?ticket=1"})
	case "users.info":
		s.userInfo(w, r.Form.Get("user"))
	case "users.conversations":
		s.listConversations(w, r.Form)
	case "conversations.info":
		s.conversationInfo(w, r.Form.Get("channel"))
	case "conversations.members":
		s.listMembers(w, r.Form)
	case "conversations.open":
		writeResult(w, map[string]any{"channel": map[string]any{"id": direct(r.Form.Get("users"))}})
	case "conversations.history", "conversations.replies":
		s.history(w, r.Form, method == "conversations.replies")
	case "chat.postMessage":
		s.postMessage(w, r.Form)
	case "chat.postEphemeral":
		s.postEphemeral(w, r.Form)
	case "chat.update":
		s.update(w, r.Form)
	case "chat.startStream":
		s.startStream(w, r.Form)
	case "chat.appendStream", "chat.stopStream":
		s.changeStream(w, r.Form, method == "chat.stopStream")
	case "reactions.add":
		s.react(w, r.Form)
	case "views.publish":
		s.publishView(w, r)
	case "assistant.threads.setStatus", "assistant.threads.setTitle", "assistant.threads.setSuggestedPrompts":
		s.setPane(w, r.Form, method)
	case "files.getUploadURLExternal":
		s.prepareUpload(w, r)
	case "files.completeUploadExternal":
		s.completeUpload(w, r.Form)
	default:
		writeError(w, "unknown_method")
	}
}

// direct returns the id of a user's private chat with the bot.
func direct(user string) string { return "D" + strings.TrimPrefix(user, "U") }

// writeResult answers a call that succeeds.
func writeResult(w http.ResponseWriter, fields map[string]any) {
	fields["ok"] = true
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(fields) // the caller may be gone
}

// writeError answers a call with an error code.
func writeError(w http.ResponseWriter, code string) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"ok": false, "error": code}) // the caller may be gone
}

// A sayRequest is the body of the control path say.
type sayRequest struct {
	Channel string `json:"channel"`
	User    string `json:"user"`
	Text    string `json:"text"`
	Thread  string `json:"thread"`
}

// control serves the paths with which people and other processes play the users:
//
//	POST /_control/say {"channel": "C1", "user": "U1", "text": "…", "thread": "…"} → {"ts": "…"}
//	GET  /_control/sent?channel=C1                          → what the bot said there
//	GET  /_control/state                                    → sockets, acks, unacked
func (s *Server) control(w http.ResponseWriter, r *http.Request, path string) {
	w.Header().Set("Content-Type", "application/json")
	var result any
	switch path {
	case "say":
		var m sayRequest
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil || m.Channel == "" || m.User == "" {
			http.Error(w, `{"error": "want {\"channel\": \"C1\", \"user\": \"U1\", \"text\": \"…\"}"}`, http.StatusBadRequest)
			return
		}
		fields := map[string]any{"text": m.Text}
		if m.Thread != "" {
			fields["thread_ts"] = m.Thread
		}
		result = map[string]string{"ts": s.Post(m.Channel, m.User, fields)}
	case "sent":
		result = s.Sent(r.URL.Query().Get("channel"))
	case "state":
		result = map[string]int{"sockets": s.Sockets(), "acks": s.Acks(), "unacked": s.Unacked()}
	default:
		http.NotFound(w, r)
		return
	}
	_ = json.NewEncoder(w).Encode(result) // the caller may be gone
}

// formValue returns a form's field, or other if the field is empty.
func formValue(form url.Values, name, other string) string {
	if v := form.Get(name); v != "" {
		return v
	}
	return other
}
