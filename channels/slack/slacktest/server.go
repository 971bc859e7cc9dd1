// Package slacktest implements Slack for tests, benchmarks and trying things by hand: its Web API and Socket Mode.
//
// It keeps Slack's promises and no more: each event goes to one of the sockets, a mention in a channel causes two
// events, an event that is not acknowledged is sent again to another socket, and history contains every message.
// Faults can be set for any method and channel.
//
// server.go is the server with its users; messages.go is for what users and the bot write; actions.go is for what
// users do other than writing; panes.go is the app's home and pane; http.go answers requests, api.go contains the
// methods of the Web API, and scopes.go says which scopes they need; sockets.go is Socket Mode, and hook.go makes
// the HTTP requests that Slack can make instead; fault.go makes requests fail.
package slacktest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// The ids of the bot and of its workspace.
const (
	Team  = "T0TEAM"
	Bot   = "U0PARLEY" // the bot's user
	botID = "B0PARLEY"
)

// A User is a member of the workspace, a guest, a bot, or somebody from elsewhere.
type User struct {
	ID       string
	Name     string
	Guest    bool
	Bot      bool
	Stranger bool // whether the user is from a connected workspace
	TZ       string
}

// A Server is Slack with one workspace and one app in it. Several goroutines may call its methods at the same time.
// It is also an http.Handler.
type Server struct {
	botToken, appToken string
	http               *http.Server
	listener           net.Listener
	sockets            *sockets

	mu        sync.Mutex
	orders    orders
	users     map[string]User
	channels  map[string][]*Message
	uploads   map[string]*Message // the bot's files that have not been posted yet, by file id
	shared    map[string][]byte   // users' files, by file id
	address   string              // the server's own URL
	reactions map[string][]string // reactions by channel and ts
	whispers  []Whisper
	lastTS    int64         // the last ts that was assigned, in microseconds
	wake      chan struct{} // closed when the bot sends a message
	scopes    []string      // the scopes of the bot's token; nil means all
	members   map[string][]string
	absent    map[string]bool   // channels that the bot is not in
	homes     map[string]string // what each user sees in the app's home
	panes     map[string]*Pane  // the panes by channel and thread
	// noMarkdown is true while the workspace refuses markdown blocks.
	noMarkdown bool
}

// New makes a server for an app with these tokens. A user that has not been added counts as a full member. The
// server serves nothing until Start, unless it is used as a handler.
func New(botToken, appToken string) *Server {
	return &Server{
		botToken: botToken, appToken: appToken, sockets: newSockets(),
		orders: orders{calls: map[string]int{}}, users: map[string]User{}, channels: map[string][]*Message{},
		uploads: map[string]*Message{}, shared: map[string][]byte{}, reactions: map[string][]string{}, members: map[string][]string{}, absent: map[string]bool{}, homes: map[string]string{}, panes: map[string]*Pane{}, wake: make(chan struct{}),
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
	s.sockets.pause(false)
	s.mu.Lock()
	s.address = "http://" + l.Addr().String()
	s.mu.Unlock()
	return "http://" + l.Addr().String() + "/api/", nil
}

// Close stops listening and cuts every connection.
func (s *Server) Close() error {
	s.sockets.pause(true)
	err := s.http.Close()
	_ = s.listener.Close() // http may not have started serving it; otherwise it is already closed
	s.sockets.cut()
	return err
}

// AddUser describes a user that is not simply a full member.
func (s *Server) AddUser(u User) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users[u.ID] = u
}

// Calls returns how many times a method was called; failed calls count too.
func (s *Server) Calls(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.orders.calls[method]
}

// Methods returns the names of the methods that were called.
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
