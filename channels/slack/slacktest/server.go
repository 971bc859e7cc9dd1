// Package slacktest is Slack for tests, benchmarks and trying things by hand: its Web API and Socket Mode.
//
// It keeps Slack's promises and not more: each event goes to one of the sockets,
// a mention in a channel is told twice, what is not acknowledged is sent again to
// another socket, and history has everything. Faults can be ordered for any
// method and channel.
package slacktest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Who the bot is.
const (
	Team  = "T0TEAM"
	Bot   = "U0PARLEY" // its user
	botID = "B0PARLEY"
)

// A User is somebody of the workspace, or from elsewhere.
type User struct {
	ID       string
	Name     string
	Guest    bool
	Bot      bool
	Stranger bool // of a connected workspace
}

// A Message is one in a channel, as everybody there sees it.
type Message struct {
	TS      string `json:"ts"`
	Channel string `json:"channel"`
	Thread  string `json:"thread,omitempty"`
	User    string `json:"user"`
	Text    string `json:"text"` // as it came, in mrkdwn
	Key     string `json:"key,omitempty"`
	File    string `json:"file,omitempty"` // its name
	Data    []byte `json:"-"`
	Calls   bool   `json:"calls"`   // it calls everybody
	Unfurls bool   `json:"unfurls"` // links show what is behind them
	Edits   int    `json:"edits,omitempty"`
	// Changed is since when the text is this.
	Changed time.Time `json:"changed"`
	more    map[string]any
}

// A Server is Slack with one workspace and one app in it. Its methods may be
// called by several goroutines at once. It is also an http.Handler.
type Server struct {
	botToken, appToken string
	http               *http.Server
	listener           net.Listener
	sockets            *sockets

	mu       sync.Mutex
	orders   orders
	users    map[string]User
	channels map[string][]*Message
	uploads  map[string]*Message // by file id
	marks    map[string][]string // reactions by channel and ts
	whispers []Whisper
	lastTS   int64         // in microseconds
	wake     chan struct{} // closed when the bot sends
	scopes   []string      // of the bot's token; nil is all
}

// New makes a server for an app with these tokens. Who is not added is a full
// member. It serves nothing until Start, or as a handler.
func New(botToken, appToken string) *Server {
	return &Server{
		botToken: botToken, appToken: appToken, sockets: newSockets(),
		orders: orders{calls: map[string]int{}}, users: map[string]User{}, channels: map[string][]*Message{},
		uploads: map[string]*Message{}, marks: map[string][]string{}, wake: make(chan struct{}),
	}
}

// Start listens on addr ("127.0.0.1:0" takes any port) and returns the URL to
// use as api_url. A server that was closed may be started again: it has
// forgotten nothing.
func (s *Server) Start(addr string) (string, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", addr)
	if err != nil {
		return "", fmt.Errorf("listen: %w", err)
	}
	s.listener = l
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go func(h *http.Server) { _ = h.Serve(l) }(s.http) // ends with Close, always in an error
	return "http://" + l.Addr().String() + "/api/", nil
}

// Close stops listening and cuts every connection.
func (s *Server) Close() error {
	err := s.http.Close()
	_ = s.listener.Close() // http may not have begun to serve it; else it is closed already
	s.sockets.cut()
	return err
}

// AddUser makes somebody known who is not simply a full member.
func (s *Server) AddUser(u User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users[u.ID] = u
}

// Say lets a user write into a channel and returns the message's ts. A channel
// that begins with D is the user's own with the bot.
func (s *Server) Say(channel, user, text string) string {
	return s.Post(channel, user, map[string]any{"text": text})
}

// Reply is Say in a thread.
func (s *Server) Reply(channel, thread, user, text string) string {
	return s.Post(channel, user, map[string]any{"text": text, "thread_ts": thread})
}

// Post lets a user put a message of any kind into a channel: the fields are
// Slack's. It returns the message's ts.
func (s *Server) Post(channel, user string, fields map[string]any) string {
	m := &Message{Channel: channel, User: user, more: fields}
	m.Text, _ = fields["text"].(string)        // "" is as good as left out
	m.Thread, _ = fields["thread_ts"].(string) // likewise
	s.mu.Lock()
	s.put(m)
	put := *m
	s.mu.Unlock()
	s.announce(put)
	return put.TS
}

// put gives a message its ts and keeps it. s.mu is held.
func (s *Server) put(m *Message) {
	s.lastTS = max(s.lastTS+1, time.Now().UnixMicro())
	m.TS = fmt.Sprintf("%d.%06d", s.lastTS/1e6, s.lastTS%1e6)
	m.Changed = time.Now()
	s.channels[m.Channel] = append(s.channels[m.Channel], m)
}

// announce tells the app of a message: of a mention in a channel twice.
func (s *Server) announce(m Message) {
	event := m.event()
	event["channel"], event["event_ts"] = m.Channel, m.TS
	event["channel_type"] = map[byte]string{'D': "im", 'G': "group"}[m.Channel[0]]
	if event["channel_type"] == "" {
		event["channel_type"] = "channel"
	}
	s.sockets.send(event, "Ev"+m.TS)
	if strings.Contains(m.Text, "<@"+Bot+">") && m.Channel[0] != 'D' {
		event["type"] = "app_mention"
		delete(event, "channel_type")
		s.sockets.send(event, "Ev-m"+m.TS)
	}
}

// event is a message as Slack writes it.
func (m *Message) event() map[string]any {
	e := map[string]any{"type": "message", "user": m.User, "text": m.Text, "ts": m.TS, "team": Team}
	if m.Thread != "" {
		e["thread_ts"] = m.Thread
	}
	if m.User == Bot {
		e["bot_id"] = botID
	}
	if m.File != "" {
		e["files"] = []map[string]any{{"id": "F" + m.TS, "name": m.File, "title": m.File}}
	}
	maps.Copy(e, m.more)
	return e
}

// Event tells the app of something else; the fields are Slack's.
func (s *Server) Event(fields map[string]any) {
	s.mu.Lock()
	s.lastTS++
	id := fmt.Sprint("Ev", s.lastTS)
	s.mu.Unlock()
	s.sockets.send(fields, id)
}

// Sent is what the bot has sent to a channel, threads included, in order.
func (s *Server) Sent(channel string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent(channel)
}

// sent is Sent. s.mu is held.
func (s *Server) sent(channel string) []Message {
	sent := []Message{}
	for _, m := range s.channels[channel] {
		if m.User == Bot {
			sent = append(sent, *m)
		}
	}
	return sent
}

// WaitSent waits until the bot has sent at least n messages to a channel and
// returns them.
func (s *Server) WaitSent(ctx context.Context, channel string, n int) ([]Message, error) {
	for {
		s.mu.Lock()
		sent, wake := s.sent(channel), s.wake
		s.mu.Unlock()
		if len(sent) >= n {
			return sent, nil
		}
		select {
		case <-wake:
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d messages in channel %s: %w", len(sent), n, channel, ctx.Err())
		}
	}
}

// Sends is how many messages the bot has sent, all channels together.
func (s *Server) Sends() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, all := range s.channels {
		for _, m := range all {
			if m.User == Bot {
				n++
			}
		}
	}
	return n
}

// Calls is how often a method was called; failed calls count too.
func (s *Server) Calls(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.orders.calls[method]
}

// Methods are those that were called.
func (s *Server) Methods() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for method := range s.orders.calls {
		all = append(all, method)
	}
	slices.Sort(all)
	return all
}

// Reactions are the bot's at a message.
func (s *Server) Reactions(channel, ts string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.marks[channel+" "+ts])
}

// A Whisper is a message that one user alone sees.
type Whisper struct{ Channel, User, Thread, Text string }

// Whispers are those that the bot has sent, in order.
func (s *Server) Whispers() []Whisper {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.whispers)
}

// ServeHTTP answers one call of the Web API, a socket, or a control path.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasPrefix(r.URL.Path, "/_control/"):
		s.control(w, r, strings.TrimPrefix(r.URL.Path, "/_control/"))
	case strings.HasPrefix(r.URL.Path, "/upload/"):
		s.upload(w, r)
	case r.URL.Path == "/link":
		s.sockets.serve(w, r)
	case strings.HasPrefix(r.URL.Path, "/api/"):
		s.api(w, r, strings.TrimPrefix(r.URL.Path, "/api/"))
	default:
		http.NotFound(w, r)
	}
}

func (s *Server) api(w http.ResponseWriter, r *http.Request, method string) {
	if err := r.ParseForm(); err != nil && r.ContentLength != 0 {
		refuse(w, "invalid_form_data")
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
		refuse(w, "invalid_auth")
		return
	}
	do := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, method) })
	channel := r.Form.Get("channel")
	if channel == "" {
		channel = r.Form.Get("channel_id")
	}
	if method == "users.info" {
		channel = r.Form.Get("user")
	}
	if f := s.begin(method, channel); f != nil {
		f.act(w, r, do)
		return
	}
	if s.lacking(w, method, channel) {
		return
	}
	do(w, r)
}

// answer does what a method does.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, method string) {
	switch method {
	case "auth.test":
		reply(w, map[string]any{"team_id": Team, "team": "Team", "user_id": Bot, "user": "parley", "bot_id": botID, "url": "https://team.slack.com/"})
	case "apps.connections.open":
		reply(w, map[string]any{"url": "ws://" + r.Host + "/link?ticket=1"})
	case "users.info":
		s.userInfo(w, r.Form.Get("user"))
	case "users.conversations":
		s.conversations(w, r.Form)
	case "conversations.open":
		reply(w, map[string]any{"channel": map[string]any{"id": direct(r.Form.Get("users"))}})
	case "conversations.history", "conversations.replies":
		s.history(w, r.Form, method == "conversations.replies")
	case "chat.postMessage":
		s.postMessage(w, r.Form)
	case "chat.postEphemeral":
		s.postEphemeral(w, r.Form)
	case "chat.update":
		s.update(w, r.Form)
	case "reactions.add":
		s.react(w, r.Form)
	case "files.getUploadURLExternal":
		s.prepareUpload(w, r)
	case "files.completeUploadExternal":
		s.completeUpload(w, r.Form)
	default:
		refuse(w, "unknown_method")
	}
}

// direct is the channel of a user with the bot.
func direct(user string) string { return "D" + strings.TrimPrefix(user, "U") }

func reply(w http.ResponseWriter, fields map[string]any) {
	fields["ok"] = true
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(fields) // the caller may be gone
}

func refuse(w http.ResponseWriter, code string) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"ok": false, "error": code}) // the caller may be gone
}

// said is what the control path say takes.
type said struct {
	Channel string `json:"channel"`
	User    string `json:"user"`
	Text    string `json:"text"`
	Thread  string `json:"thread"`
}

// control serves the paths by which people and other processes play the users:
//
//	POST /_control/say {"channel": "C1", "user": "U1", "text": "…", "thread": "…"} → {"ts": "…"}
//	GET  /_control/sent?channel=C1                          → what the bot said there
//	GET  /_control/state                                    → sockets, acks, unacked
func (s *Server) control(w http.ResponseWriter, r *http.Request, path string) {
	w.Header().Set("Content-Type", "application/json")
	var result any
	switch path {
	case "say":
		var m said
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

// formOf is a form's field that is not empty, or the other.
func formOf(form url.Values, name, other string) string {
	if v := form.Get(name); v != "" {
		return v
	}
	return other
}
