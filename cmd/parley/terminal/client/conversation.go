package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"parley/bus"
	"parley/channels"
)

// A Conversation is the terminal's end of a conversation with the agent, through the server that
// has the home open.
type Conversation struct {
	Server  *Client // reaches the process that has the home open
	Session string  // the session's key
	Name    string  // the session's name, by which the server knows it
	Agent   string  // the agent, if it is not the main one; else ""
	// Deliver shows the person what the bot has said.
	Deliver func(ctx context.Context, part channels.Part) error

	mu    sync.Mutex
	ids   map[string]string // from the server's message ids to the terminal's own
	shown map[string]bool   // the keys of what was delivered
}

// NewConversation returns the terminal's end of the conversation with that key and name.
func NewConversation(c *Client, key, name string) *Conversation {
	return &Conversation{Server: c, Session: key, Name: name, ids: map[string]string{}, shown: map[string]bool{}}
}

// Say sends a message to the agent. Sending it again does nothing. If the server refuses the message, or one of its files
// can't be read, Say shows the person why, and returns nil.
func (r *Conversation) Say(ctx context.Context, in bus.Inbound) error {
	to := "agent"
	if r.Agent != "" {
		to += ":" + r.Agent
	}
	body := sayRequest{To: to, Text: in.Text, Session: r.Name}
	for _, a := range in.Attachments {
		f, err := read(a)
		if err != nil {
			refused := err.Error() + "; nothing was sent"
			return r.Deliver(ctx, channels.Part{Key: in.ID + "#refused", Text: refused, Plain: refused})
		}
		body.Files = append(body.Files, f)
	}
	var accepted struct {
		ID string `json:"id"`
	}
	// The answer may arrive before this request returns. So the lock is held, and showing the
	// answer waits until the id is known.
	r.mu.Lock()
	defer r.mu.Unlock()
	err := r.Server.Do(ctx, http.MethodPost, "/v1/messages", in.ID, body, &accepted)
	if refused, ok := errors.AsType[*Error](err); ok && refused.Status < 500 {
		return r.Deliver(ctx, channels.Part{Key: in.ID + "#refused", Text: refused.Message, Plain: refused.Message})
	}
	if err != nil {
		return err
	}
	r.ids[accepted.ID] = in.ID
	return nil
}

// A sayRequest is the request that tells the server what the person said.
type sayRequest struct {
	To      string     `json:"to"`
	Text    string     `json:"text"`
	Session string     `json:"session"`
	Files   []bus.File `json:"files,omitempty"`
}

// read reads a file on this machine that the person sends along.
func read(a bus.Attachment) (bus.File, error) {
	f, err := os.OpenFile(a.Ref, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return bus.File{}, fmt.Errorf("%s can't be read: %w", a.Name, err)
	}
	defer func() { _ = f.Close() }() // it was only read
	raw, err := io.ReadAll(io.LimitReader(f, a.Size+1))
	if err == nil && int64(len(raw)) > a.Size {
		err = errors.New("it's still growing")
	}
	if err != nil {
		return bus.File{}, fmt.Errorf("%s can't be read: %w", a.Name, err)
	}
	return bus.File{Name: a.Name, Data: raw}, nil
}

// ownID returns the terminal's own id for the message that has this id on the server.
func (r *Conversation) ownID(id string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	cause, _ := bus.Cause(id)
	if mine, ok := r.ids[cause]; ok {
		return mine + strings.TrimPrefix(id, cause)
	}
	return id
}

// Subscribe returns the session's events, once the stream has begun. A stream that is cut off is
// resumed where it ended. Texts in events of type Spoken are not returned, but shown with Deliver.
func (r *Conversation) Subscribe(ctx context.Context, _ bus.Feed, _ uint64) (iter.Seq2[bus.Event, error], error) {
	path := "/v1/sessions/" + url.PathEscape(r.Session) + "/events"
	events := make(chan bus.Event, 64)
	standing := make(chan struct{})
	up := sync.OnceFunc(func() { close(standing) })
	go func() {
		defer close(events)
		last := ""
		for ctx.Err() == nil {
			_ = r.Server.follow(ctx, path, last, func(n serverEvent) error { // streams are cut off now and then, and resumed
				up()
				if n.id != "" {
					last = n.id
				}
				return r.receive(ctx, n, events)
			})
			select {
			case <-time.After(200 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}()
	select {
	case <-standing:
	case <-ctx.Done():
	}
	return func(yield func(bus.Event, error) bool) {
		for e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}, nil
}

// receive handles one event of the stream.
func (r *Conversation) receive(ctx context.Context, n serverEvent, events chan<- bus.Event) error {
	if n.kind == "snapshot" {
		return r.catchUp(ctx, n.data, events)
	}
	if n.kind == bus.Asked || n.kind == bus.AskResolved {
		return r.passAsk(ctx, n, events)
	}
	e := bus.Event{Type: n.kind}
	if err := json.Unmarshal(n.data, &e); err != nil {
		return err
	}
	if details := detailsOf(&e); details != nil {
		if err := json.Unmarshal(n.data, details); err != nil {
			return err
		}
	}
	if e.Type == bus.Spoken {
		return r.show(ctx, e.Call, e.Delta)
	}
	r.pass(ctx, e, events)
	return nil
}

// detailsOf allocates the field for data that only this kind of event has, such as Retry, and returns a pointer to it
// for decoding. It returns nil for all other kinds.
func detailsOf(e *bus.Event) any {
	switch e.Type {
	case bus.Retried:
		e.Retry = new(bus.Retry)
		return e.Retry
	case bus.Compacted:
		e.Compaction = new(bus.Compaction)
		return e.Compaction
	case bus.Used:
		e.Usage = new(bus.Usage)
		return e.Usage
	}
	return nil
}

// pass sends an event to the terminal, with the terminal's ids.
func (r *Conversation) pass(ctx context.Context, e bus.Event, events chan<- bus.Event) {
	e.Session, e.Turn = r.Session, r.ownID(e.Turn)
	for i, id := range e.Causes {
		e.Causes[i] = r.ownID(id)
	}
	select {
	case events <- e:
	case <-ctx.Done():
	}
}

// show delivers what the bot has said, but only once for each key: after a gap in the stream the
// same event may arrive twice.
func (r *Conversation) show(ctx context.Context, key, text string) error {
	r.mu.Lock()
	again := r.shown[key]
	r.shown[key] = true
	r.mu.Unlock()
	if again {
		return nil
	}
	return r.Deliver(ctx, channels.Part{Key: r.ownID(key), Text: text, Plain: text})
}
