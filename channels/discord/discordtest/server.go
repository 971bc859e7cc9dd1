// Package discordtest is Discord's REST API and gateway for tests, benchmarks and trying things by hand.
//
// It keeps what Discord promises about messages: numbers that grow, nonces that
// drop a repetition, a text of at most 2,000 units, nobody called by a list of
// allowed mentions that is empty. Faults can be ordered for any call and channel.
//
// The files, in reading order: server.go serves, and says what the bot has sent; api.go
// answers calls; say.go has people say things; gateway.go is the gateway, and session.go
// what it keeps of each session; interactions.go are buttons, slash commands and reactions;
// fault.go orders faults.
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

// A Message is one that the bot has sent, as the channel sees it.
type Message struct {
	ID      string    `json:"id"`
	Channel string    `json:"channel_id"`
	Text    string    `json:"content"`
	Nonce   string    `json:"nonce,omitempty"`
	ReplyTo string    `json:"reply_to,omitempty"`
	File    string    `json:"file,omitempty"` // its name
	Data    []byte    `json:"-"`
	Flags   int       `json:"flags"`
	Calls   bool      `json:"calls"` // those whom the text names are called
	Edits   int       `json:"edits,omitempty"`
	At      time.Time `json:"timestamp"`
	// Changed is since when the text is this.
	Changed time.Time `json:"changed"`
	// Author is who wrote it: Bot, or a person's id.
	Author string `json:"author"`
	// Buttons are below the text, and Reactions the bot's at it.
	Buttons   []Button `json:"buttons,omitempty"`
	Reactions []string `json:"reactions,omitempty"`
	enforced  bool
	more      map[string]any // fields of Discord's, of what people say
}

// A Server is Discord with one bot. Its methods may be called by several
// goroutines at once. It is also an http.Handler; use its URL as api_url.
type Server struct {
	token    string
	http     *http.Server
	listener net.Listener

	// ShowNonces has nonces in what is listed, which Discord does not promise.
	// Set it before the first call.
	ShowNonces bool

	gateway *gateway

	mu       sync.Mutex
	faults   []*fault
	lastID   uint64
	sends    int
	calls    map[string]int
	messages map[string][]*Message // by channel
	places   map[string]Place
	hidden   map[string]bool // channels that the bot may not read
	wake     chan struct{}   // closed when a message is sent
	// permissions are the bot's in the server.
	permissions  int64
	interactions map[string]*Interaction
	files        map[string][]byte // what people have sent, by id
	offered      []map[string]any  // slash commands
}

// New makes a server for the bot of that token. It serves nothing until Start,
// or as a handler.
func New(token string) *Server {
	return &Server{
		token: token, gateway: newGateway(token), calls: map[string]int{}, messages: map[string][]*Message{}, places: map[string]Place{},
		hidden: map[string]bool{}, permissions: everything, interactions: map[string]*Interaction{}, files: map[string][]byte{}, offered: []map[string]any{}, wake: make(chan struct{}),
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
	return "http://" + l.Addr().String() + "/api/v9", nil
}

// Close stops listening and cuts every connection.
func (s *Server) Close() error {
	err := s.http.Close()
	s.gateway.cut()
	_ = s.listener.Close() // http may not have begun to serve it; else it is closed already
	return err
}

// Sent is what the bot has sent to a channel, in order.
func (s *Server) Sent(channel string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent(channel)
}

// sent is Sent. s.mu is held.
func (s *Server) sent(channel string) (sent []Message) {
	for _, m := range s.messages[channel] {
		if m.Author == Bot {
			sent = append(sent, *m)
		}
	}
	return sent
}

// Sends is how many messages the bot has sent, all channels together.
func (s *Server) Sends() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sends
}

// Calls is how often something was called, such as "POST messages"; failed
// calls count too.
func (s *Server) Calls(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[what]
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

// ServeHTTP answers one call of the API, or of the control path
// GET /_control/sent?channel=1, which gives what the bot said there.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/_control/sent" {
		answer(w, http.StatusOK, s.Sent(r.URL.Query().Get("channel")))
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
		refuse(w, http.StatusNotFound, 0, "404: Not Found")
		return
	}
	if r.Header.Get("Authorization") != "Bot "+s.token {
		refuse(w, http.StatusUnauthorized, 0, "401: Unauthorized")
		return
	}
	parts := strings.Split(path, "/")
	channel, what := "", parts[0]
	if len(parts) >= 3 && parts[0] == "channels" {
		channel, what = parts[1], parts[2]
	}
	do := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, parts, channel) })
	if f := s.begin(r.Method+" "+what, channel); f != nil {
		f.act(w, r, do)
		return
	}
	do(w, r)
}
