// Package discordtest is Discord's REST API for tests, benchmarks and trying things by hand.
//
// It keeps what Discord promises about messages: numbers that grow, nonces that
// drop a repetition, a text of at most 2,000 units, nobody called by a list of
// allowed mentions that is empty. Faults can be ordered for any call and channel.
package discordtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf16"
)

// mostUnits is how long a text may be, in UTF-16 units.
const mostUnits = 2000

// A Message is one that the bot has sent, as the channel sees it.
type Message struct {
	ID       string    `json:"id"`
	Channel  string    `json:"channel_id"`
	Text     string    `json:"content"`
	Nonce    string    `json:"nonce,omitempty"`
	ReplyTo  string    `json:"reply_to,omitempty"`
	File     string    `json:"file,omitempty"` // its name
	Data     []byte    `json:"-"`
	Flags    int       `json:"flags"`
	Calls    bool      `json:"calls"` // those whom the text names are called
	Edits    int       `json:"edits,omitempty"`
	At       time.Time `json:"timestamp"`
	enforced bool
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

	mu     sync.Mutex
	faults []*fault
	lastID uint64
	sends  int
	calls  map[string]int
	sent   map[string][]Message // by channel
	wake   chan struct{}        // closed when a message is sent
}

// New makes a server for the bot of that token. It serves nothing until Start,
// or as a handler.
func New(token string) *Server {
	return &Server{
		token: token, lastID: 1_100_000_000_000_000_000,
		calls: map[string]int{}, sent: map[string][]Message{}, wake: make(chan struct{}),
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
	_ = s.listener.Close() // http may not have begun to serve it; else it is closed already
	return err
}

// Sent is what the bot has sent to a channel, in order.
func (s *Server) Sent(channel string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sent[channel])
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
		sent, wake := slices.Clone(s.sent[channel]), s.wake
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

// answer does what a call asks.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, parts []string, channel string) {
	call := r.Method + " " + parts[len(parts)-1]
	switch {
	case r.URL.Path == "/api/v9/users/@me" && r.Method == http.MethodGet:
		answer(w, http.StatusOK, map[string]any{"id": "4242", "username": "parley", "bot": true})
	case channel == "":
		refuse(w, http.StatusNotFound, 0, "404: Not Found")
	case call == "POST messages":
		s.create(w, r, channel)
	case call == "GET messages":
		s.list(w, r, channel)
	case r.Method == http.MethodPatch && len(parts) == 4:
		s.edit(w, r, channel, parts[3])
	default:
		refuse(w, http.StatusMethodNotAllowed, 0, "405: Method Not Allowed")
	}
}

// A request is what a message may be made of.
type request struct {
	Content  string `json:"content"`
	Nonce    string `json:"nonce"`
	Enforce  bool   `json:"enforce_nonce"`
	Mentions *struct {
		Parse []string `json:"parse"`
	} `json:"allowed_mentions"`
	Flags     int `json:"flags"`
	Reference *struct {
		ID       string `json:"message_id"`
		OrRefuse *bool  `json:"fail_if_not_exists"`
	} `json:"message_reference"`
}

// read reads a message, as JSON or as a form with a file.
func read(r *http.Request) (m Message, req request, err error) {
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return m, req, fmt.Errorf("type of the body: %w", err)
	}
	if kind == "application/json" {
		err = json.NewDecoder(r.Body).Decode(&req)
	} else {
		form := multipart.NewReader(r.Body, params["boundary"])
		for part, nextErr := form.NextPart(); ; part, nextErr = form.NextPart() {
			if nextErr == io.EOF {
				break
			}
			if nextErr != nil {
				return m, req, fmt.Errorf("form: %w", nextErr)
			}
			if part.FormName() == "payload_json" {
				err = json.NewDecoder(part).Decode(&req)
			} else {
				m.File = part.FileName()
				m.Data, err = io.ReadAll(part)
			}
			if err != nil {
				break
			}
		}
	}
	m.Text, m.Nonce, m.enforced, m.Flags = req.Content, req.Nonce, req.Enforce, req.Flags
	// A list that is null or missing calls everybody whom the text names.
	m.Calls = req.Mentions == nil || req.Mentions.Parse == nil || len(req.Mentions.Parse) > 0
	return m, req, err
}

// bad is the code of what Discord refuses a message for; 0 is nothing.
func (m Message) bad() int {
	units := 0
	for _, r := range m.Text {
		units += utf16.RuneLen(r)
	}
	switch {
	case units > mostUnits, len(m.Nonce) > 25:
		return 50035
	case strings.TrimSpace(m.Text) == "" && m.File == "":
		return 50006
	}
	return 0
}

func (s *Server) create(w http.ResponseWriter, r *http.Request, channel string) {
	m, req, err := read(r)
	if err != nil {
		refuse(w, http.StatusBadRequest, 50109, "The request body contains invalid JSON.")
		return
	}
	if code := m.bad(); code != 0 {
		refuse(w, http.StatusBadRequest, code, "Invalid Form Body")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.sent[channel]
	if m.enforced {
		if i := slices.IndexFunc(all, func(old Message) bool { return old.Nonce == m.Nonce }); i >= 0 {
			answer(w, http.StatusOK, all[i])
			return
		}
	}
	if ref := req.Reference; ref != nil {
		known := slices.ContainsFunc(all, func(old Message) bool { return old.ID == ref.ID })
		if !known && (ref.OrRefuse == nil || *ref.OrRefuse) {
			refuse(w, http.StatusBadRequest, 50035, "Unknown message")
			return
		}
		m.ReplyTo = ref.ID
	}
	s.lastID++
	m.ID, m.Channel, m.At = strconv.FormatUint(s.lastID, 10), channel, time.Now()
	s.sent[channel] = append(all, m)
	s.sends++
	close(s.wake)
	s.wake = make(chan struct{})
	answer(w, http.StatusOK, m)
}

func (s *Server) list(w http.ResponseWriter, r *http.Request, channel string) {
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil || limit < 1 || limit > 100 {
		limit = 50
	}
	newest := s.Sent(channel)
	slices.Reverse(newest)
	newest = newest[:min(limit, len(newest))]
	if !s.ShowNonces {
		for i := range newest {
			newest[i].Nonce = ""
		}
	}
	answer(w, http.StatusOK, newest)
}

func (s *Server) edit(w http.ResponseWriter, r *http.Request, channel, id string) {
	now, _, err := read(r)
	if code := now.bad(); err != nil || code != 0 {
		refuse(w, http.StatusBadRequest, code, "Invalid Form Body")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.sent[channel]
	i := slices.IndexFunc(all, func(m Message) bool { return m.ID == id })
	if i < 0 {
		refuse(w, http.StatusNotFound, 10008, "Unknown Message")
		return
	}
	all[i].Text, all[i].Flags, all[i].Calls = now.Text, now.Flags, now.Calls
	all[i].Edits++
	answer(w, http.StatusOK, all[i])
}

func answer(w http.ResponseWriter, status int, result any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(result) // the caller may be gone
}

func refuse(w http.ResponseWriter, status, code int, text string) {
	answer(w, status, map[string]any{"message": text, "code": code})
}
