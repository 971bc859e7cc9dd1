// Package discordtest implements Discord's REST API and gateway for tests, benchmarks and trying things by hand.
//
// It keeps Discord's promises about messages: ids that grow, nonces by which repetitions are dropped, texts of at
// most 2,000 units, and that nobody is notified if the list of allowed mentions is empty. Faults can be set for any
// call and channel.
//
// The files, in reading order: server.go serves, and returns what the bot has sent; api.go answers calls; say.go is
// for what people write; gateway.go is the gateway, and session.go its sessions; interactions.go is for buttons,
// slash commands and reactions; fault.go makes calls fail.
package discordtest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// A Message is a message that the bot or a person has sent, as its channel shows it.
type Message struct {
	ID             string    `json:"id"`
	Channel        string    `json:"channel_id"`
	Text           string    `json:"content"`
	Nonce          string    `json:"nonce,omitempty"`
	ReplyTo        string    `json:"reply_to,omitempty"`
	File           string    `json:"file,omitempty"` // the file's name
	Data           []byte    `json:"-"`
	Flags          int       `json:"flags"`
	NotifiesPeople bool      `json:"calls"` // whether the people that the text names are notified
	Edits          int       `json:"edits,omitempty"`
	At             time.Time `json:"timestamp"`
	// Changed is when the text was last changed.
	Changed time.Time `json:"changed"`
	// Author is the writer's id: Bot, or a person's id.
	Author string `json:"author"`
	// Buttons are shown below the text; Reactions are the bot's.
	Buttons       []Button `json:"buttons,omitempty"`
	Reactions     []string `json:"reactions,omitempty"`
	nonceEnforced bool
	extraFields   map[string]any // further fields in Discord's JSON, for people's messages
}

// A Server is Discord with one bot. Several goroutines may call its methods at the same time. It is also an
// http.Handler; use its URL as api_url.
type Server struct {
	token    string
	http     *http.Server
	listener net.Listener

	// ShowNonces makes history show nonces, which Discord does not promise. Set it before the first call.
	ShowNonces bool

	gateway *gateway

	mu       sync.Mutex
	faults   []*fault
	lastID   uint64
	sends    int
	calls    map[string]int
	messages map[string][]*Message // the messages by channel
	places   map[string]Place
	hidden   map[string]bool // channels that the bot may not read
	wake     chan struct{}   // closed when a message is sent
	// permissions are the bot's permissions in the server.
	permissions     int64
	interactions    map[string]*Interaction
	files           map[string][]byte // the files that people have sent, by id
	offeredCommands []map[string]any  // slash commands
}

// New makes a server for the bot with that token. It serves nothing until Start, unless it is used as a handler.
func New(token string) *Server {
	return &Server{
		token: token, gateway: newGateway(token), calls: map[string]int{}, messages: map[string][]*Message{}, places: map[string]Place{},
		hidden: map[string]bool{}, permissions: allButAdministrator, interactions: map[string]*Interaction{}, files: map[string][]byte{}, offeredCommands: []map[string]any{}, wake: make(chan struct{}),
	}
}

// Start listens on addr ("127.0.0.1:0" means any port) and returns the URL to use as api_url. A closed server may
// be started again, with everything that it has stored.
func (s *Server) Start(addr string) (string, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", addr)
	if err != nil {
		return "", fmt.Errorf("listen: %w", err)
	}
	s.listener = l
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go func(h *http.Server) { _ = h.Serve(l) }(s.http) // it ends with Close, always with an error
	return "http://" + l.Addr().String() + "/api/v9", nil
}

// Close stops listening and cuts every connection.
func (s *Server) Close() error {
	err := s.http.Close()
	s.gateway.cut()
	_ = s.listener.Close() // http may not have started serving it; otherwise it is already closed
	return err
}

// Sent returns the messages that the bot has sent to a channel, in order.
func (s *Server) Sent(channel string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent(channel)
}

// sent does what Sent does, for callers that hold s.mu.
func (s *Server) sent(channel string) (sent []Message) {
	for _, m := range s.messages[channel] {
		if m.Author == Bot {
			sent = append(sent, *m)
		}
	}
	return sent
}

// Sends returns how many messages the bot has sent to all channels together.
func (s *Server) Sends() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sends
}

// Calls returns how many times a call such as "POST messages" was made; failed calls count too.
func (s *Server) Calls(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[what]
}

// WaitSent waits until the bot has sent at least n messages to a channel, and returns
// them.
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

// ServeHTTP answers one call to the API, a connection to the gateway, a file download, or a call to the control
// path GET /_control/sent?channel=1, which returns what the bot has sent there.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/_control/sent" {
		writeJSON(w, http.StatusOK, s.Sent(r.URL.Query().Get("channel")))
		return
	}
	if id, ok := strings.CutPrefix(r.URL.Path, "/files/"); ok {
		s.giveFile(w, r, id)
		return
	}
	if r.URL.Path == gatewayPath {
		s.gateway.serve(w, r, s)
		return
	}
	path, ok := strings.CutPrefix(r.URL.Path, "/api/v9/")
	if !ok {
		writeError(w, http.StatusNotFound, 0, "404: Not Found")
		return
	}
	if r.Header.Get("Authorization") != "Bot "+s.token {
		writeError(w, http.StatusUnauthorized, 0, "401: Unauthorized")
		return
	}
	parts := strings.Split(path, "/")
	channel, what := "", parts[0]
	if len(parts) >= 3 && parts[0] == "channels" {
		channel, what = parts[1], parts[2]
	}
	do := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.route(w, r, parts, channel) })
	if f := s.countCall(r.Method+" "+what, channel); f != nil {
		f.act(w, r, do)
		return
	}
	do(w, r)
}
