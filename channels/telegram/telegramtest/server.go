// Package telegramtest implements a Telegram Bot API server for tests, benchmarks and trying things by hand.
//
// It keeps Telegram's promises and no more: an update stays until a poll asks for a later one, a second poll ends
// the first with a 409, markup that can't be parsed is refused, and the messages in a chat are numbered. Faults can
// be set for any method and chat.
package telegramtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A Message is a message that the bot has sent, as its chat shows it.
type Message struct {
	ID      int       `json:"id"`
	Chat    int64     `json:"chat"`
	Thread  int       `json:"thread,omitempty"`
	ReplyTo int       `json:"reply_to,omitempty"`
	Text    string    `json:"text"` // the text without tags
	Raw     string    `json:"raw"`  // the text as it was sent
	Mode    string    `json:"mode,omitempty"`
	At      time.Time `json:"at"`
	// Edited is when the text was last replaced, and Earlier are the previous texts, oldest first.
	Edited  time.Time `json:"edited,omitzero"`
	Earlier []string  `json:"earlier,omitempty"`
	File    *File     `json:"file,omitempty"` // the file, if the message has one; Text is then its caption
	// Entities is how many pieces of the text are formatted, and Unformatted how many more should have been:
	// Telegram drops their formatting without an error.
	Entities    int      `json:"entities,omitempty"`
	Unformatted int      `json:"unformatted,omitempty"`
	Buttons     []Button `json:"buttons,omitempty"`
}

// A File is a file that the bot has sent.
type File struct {
	Name string `json:"name"`
	Size int    `json:"size"`
	Data []byte `json:"-"`
	// Photo is true if people see the file as a picture, and Voice if they see a voice note.
	Photo bool `json:"-"`
	Voice bool `json:"-"`
}

// A Server is a Bot API server with one bot. Several goroutines may call its methods at the same time. It is also
// an http.Handler.
type Server struct {
	token    string
	username string
	http     *http.Server
	listener net.Listener

	mu                    sync.Mutex
	faults                []*Fault
	chats                 map[int64]*chat
	calls                 map[string]int
	lastID                int64 // the id of the last update
	sends                 int
	presses               map[string]*Press    // button presses, by id
	files                 map[string][]byte    // files that users have sent, by id
	allowedUpdates        string               // the kinds of updates that the bot last asked for
	unconfirmed           []update             // the updates that no poll has confirmed
	pollCount             int                  // how many polls have started; each new poll ends the previous one
	wakePoll              chan struct{}        // closed when an update is added or another poll begins
	hook                  *hook                // delivers instead of polls; nil if there is none
	menus                 map[string][]Command // the lists of commands, by scope
	receivesGroupMessages atomic.Bool          // whether the bot's privacy mode is off, so that it receives all messages in groups
	closed                bool
	movedGroups           map[int64]int64 // groups that have become supergroups
	members               []member
	typingTopics          map[int64]int // by chat: the topic in which the bot was last shown typing; 0 means none
}

// An update is an update that the bot has not confirmed yet.
type update struct {
	id   int64
	json []byte
	// lineKey is the chat or, for presses, the person whose updates are delivered one after another.
	lineKey string
}

// A chat holds the messages of one chat.
type chat struct {
	lastID int
	sent   []Message
	drafts []string               // drafts that have been shown since the last message
	posts  map[int]map[string]any // the newest messages from users, by id
	wake   chan struct{}          // closed when sent grows; nil while nobody waits
}

// New makes a server for the bot with that token and username. It serves nothing until
// Start, unless it is used as a handler.
func New(token, username string) *Server {
	return &Server{
		token:        token,
		username:     username,
		chats:        make(map[int64]*chat),
		calls:        make(map[string]int),
		presses:      make(map[string]*Press),
		files:        make(map[string][]byte),
		wakePoll:     make(chan struct{}),
		movedGroups:  make(map[int64]int64),
		typingTopics: make(map[int64]int),
		menus:        make(map[string][]Command),
	}
}

// Start listens on addr ("127.0.0.1:0" means any port) and returns the URL to use as api_url. A closed server may
// be started again, with everything that it has stored.
func (s *Server) Start(addr string) (string, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", addr)
	if err != nil {
		return "", fmt.Errorf("listen: %w", err)
	}
	s.mu.Lock()
	s.closed = false
	s.wakePolls()
	s.mu.Unlock()
	s.listener = l
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go func(h *http.Server) { _ = h.Serve(l) }(s.http) // it ends with Close, always with an error
	return "http://" + l.Addr().String(), nil
}

// SwitchPrivacy switches the bot's privacy mode on, as it is for a new bot, or off.
func (s *Server) SwitchPrivacy(on bool) { s.receivesGroupMessages.Store(!on) }

// Close stops listening and cuts every connection.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	err := s.http.Close()
	_ = s.listener.Close() // http may not have started serving it; otherwise it is already closed
	if err != nil {
		return fmt.Errorf("close: %w", err)
	}
	return nil
}

// QueueUpdate queues an update of any kind and returns its id.
func (s *Server) QueueUpdate(fields map[string]any) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.enqueue(fields)
}

// enqueue gives an update its id, queues it and wakes the polls. The caller holds s.mu.
func (s *Server) enqueue(fields map[string]any) int64 {
	s.lastID++
	u := map[string]any{"update_id": s.lastID}
	maps.Copy(u, fields)
	data, err := json.Marshal(u)
	if err != nil {
		panic("telegramtest: an update that is no JSON: " + err.Error()) // the test's mistake
	}
	s.unconfirmed = append(s.unconfirmed, update{s.lastID, data, lineKey(data)})
	s.wakePolls()
	return s.lastID
}

// wakePolls makes the waiting polls check again. The caller holds s.mu.
func (s *Server) wakePolls() {
	close(s.wakePoll)
	s.wakePoll = make(chan struct{})
}

// Unconfirmed returns how many updates no poll has confirmed yet.
func (s *Server) Unconfirmed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.unconfirmed)
}

// Calls returns how many times a method was called; failed calls count too.
func (s *Server) Calls(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[method]
}

// TypingTopic returns the topic in a chat in which the bot was last shown typing; 0 if that was in no topic.
func (s *Server) TypingTopic(chat int64) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.typingTopics[chat]
}

// Sends returns how many messages the bot has sent to all chats together.
func (s *Server) Sends() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sends
}

// Sent returns the messages that the bot has sent to a chat, in order.
func (s *Server) Sent(chat int64) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Message(nil), s.findChat(chat).sent...)
}

// WaitSent waits until the bot has sent at least n messages to a chat, and returns them. If ctx ends first, it
// returns an error.
func (s *Server) WaitSent(ctx context.Context, chat int64, n int) ([]Message, error) {
	if err := s.AwaitSent(ctx, chat, n); err != nil {
		return nil, err
	}
	return s.Sent(chat), nil
}

// AwaitSent waits until the bot has sent at least n messages to a chat. If ctx ends first, it returns an error.
func (s *Server) AwaitSent(ctx context.Context, chat int64, n int) error {
	for {
		s.mu.Lock()
		c := s.findChat(chat)
		have := len(c.sent)
		if have >= n {
			s.mu.Unlock()
			return nil
		}
		if c.wake == nil {
			c.wake = make(chan struct{})
		}
		wake := c.wake
		s.mu.Unlock()
		select {
		case <-wake:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d messages in chat %d: %w", have, n, chat, ctx.Err())
		}
	}
}

// findChat returns a chat; it creates the chat if it is not known. The caller holds s.mu.
func (s *Server) findChat(id int64) *chat {
	c := s.chats[id]
	if c == nil {
		c = new(chat)
		s.chats[id] = c
	}
	return c
}

// chatType returns Telegram's type of a chat: a negative id is a group's.
func chatType(id int64) string {
	if id < 0 {
		return "supergroup"
	}
	return "private"
}

// ServeHTTP answers one call of the Bot API, a download, or a control path.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if control, ok := strings.CutPrefix(r.URL.Path, "/_control/"); ok {
		s.control(w, r, control)
		return
	}
	if file, ok := strings.CutPrefix(r.URL.Path, "/file/bot"); ok {
		s.download(w, file)
		return
	}
	token, method, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/bot"), "/")
	if token != s.token {
		writeError(w, refusal{status: http.StatusUnauthorized, text: "Unauthorized"})
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	p := parseParams(r, body)
	fault := s.countCall(method, p.intParam("chat_id"))
	if fault.actBefore(w, r) {
		return
	}
	if to := s.movedTo(p.intParam("chat_id")); to != 0 {
		writeError(w, refusal{status: http.StatusBadRequest, text: "Bad Request: group chat was upgraded to a supergroup chat", migrateTo: to})
		return
	}
	result, err := s.route(r.Context(), method, p)
	if fault.actAfter(w, r) {
		return
	}
	switch e, ok := errors.AsType[refusal](err); {
	case ok:
		writeError(w, e)
	case err == nil:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(result) // the caller may be gone
	}
}

// route passes a call to the handler of its method. If the error is not a refusal, the call gets no answer.
func (s *Server) route(ctx context.Context, method string, p params) ([]byte, error) {
	switch strings.ToLower(method) {
	case "getupdates":
		return s.getUpdates(ctx, p)
	case "sendmessage":
		return s.sendMessage(p)
	case "senddocument":
		return s.sendFile(p, "document")
	case "sendphoto":
		return s.sendFile(p, "photo")
	case "sendvoice":
		return s.sendFile(p, "voice")
	case "editmessagetext":
		return s.editMessageText(p)
	case "answercallbackquery":
		return s.answerPress(p)
	case "getfile":
		return s.getFile(p)
	case "getme":
		id, _, _ := strings.Cut(s.token, ":")
		return []byte(`{"ok":true,"result":{"id":` + id + `,"is_bot":true,"first_name":"Parley","username":"` + s.username + `","can_read_all_group_messages":` + strconv.FormatBool(s.receivesGroupMessages.Load()) + `}}`), nil
	case "setwebhook":
		return s.setWebhook(p)
	case "deletewebhook":
		return s.deleteWebhook()
	case "getwebhookinfo":
		return s.webhookInfo()
	case "sendmessagedraft":
		return s.sendMessageDraft(p)
	case "setmycommands":
		return s.setMyCommands(p)
	case "getmycommands":
		return s.getMyCommands(p)
	case "getchatmember":
		return s.getChatMember(p)
	case "sendchataction":
		s.mu.Lock()
		defer s.mu.Unlock()
		s.typingTopics[p.intParam("chat_id")] = int(p.intParam("message_thread_id"))
		return []byte(`{"ok":true,"result":true}`), nil
	}
	return nil, refusal{status: http.StatusNotFound, text: "Not Found"}
}
