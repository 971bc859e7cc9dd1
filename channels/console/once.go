package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/tools/plainjson"
)

// endEventWait is how long printing an answer waits for the event that ends the answer's turn. That event was emitted
// before the answer was sent, but may arrive later.
const endEventWait = time.Second

// askOnce publishes the message in Config.Once, or all of In if that is empty, and returns when the answer has been
// printed or it is certain that there will be none.
func (c *Channel) askOnce(ctx context.Context, publish func(context.Context, bus.Inbound) error) error {
	text := c.cfg.Once
	if text == "" {
		var err error
		if text, err = readAll(ctx, c.cfg.In); err != nil || ctx.Err() != nil {
			return err
		}
	}
	if strings.TrimSpace(text) == "" {
		return fmt.Errorf("%w: you didn't ask anything", ErrFailed)
	}
	if wrong := c.cfg.refusalOf(text); wrong != "" {
		return fmt.Errorf("%w: %s", ErrFailed, wrong)
	}
	in, wrong := c.personMessage(text), ""
	if c.cfg.Once != "" { // what arrives on standard input was not typed, and names no files
		if in, wrong = c.withFiles(in); wrong != "" {
			return fmt.Errorf("%w: %s", ErrFailed, wrong)
		}
	}
	c.once.expect(in.ID, isCommand(text))
	if err := c.publish(ctx, publish, in); err != nil {
		return nil // ctx is done
	}
	select {
	case err := <-c.once.result:
		return err
	case <-ctx.Done():
		return nil
	}
}

// readAll reads from a reader to its end, and replaces invalid UTF-8. It fails if the text is longer than the longest
// allowed message. If ctx ends first, it returns "" and no error.
func readAll(ctx context.Context, from io.Reader) (string, error) {
	type all struct {
		text []byte
		err  error
	}
	read := make(chan all, 1)
	go func() { // a read of standard input can't be interrupted
		text, err := io.ReadAll(io.LimitReader(from, bus.MaxBody+1))
		read <- all{text, err}
	}()
	select {
	case a := <-read:
		switch {
		case a.err != nil:
			return "", fmt.Errorf("read the message: %w", a.err)
		case len(a.text) > bus.MaxBody:
			return "", errors.New("the message is too long: Parley takes all of standard input as one message")
		}
		return strings.ToValidUTF8(string(a.text), "\uFFFD"), nil
	case <-ctx.Done():
		return "", nil
	}
}

// An answerWaiter waits for the answer to one message and prints it to out; it prints other messages to err.
type answerWaiter struct {
	session  string
	json     bool
	out, err io.Writer
	result   chan error // receives, once, what Receive returns

	mu        sync.Mutex
	id        string               // the id of the message
	isCommand bool                 // whether the message is a command, which no turn answers
	turns     map[string]bool      // the turns that answer the message: its own, or one that it was steered into
	ended     map[string]bus.Event // by turn: the event that ended it
	changed   chan struct{}        // closed and replaced when ended grows
	finished  bool                 // whether result has received its value
}

func newAnswerWaiter(cfg Config) *answerWaiter {
	return &answerWaiter{
		session: cfg.Session, json: cfg.JSON, out: cfg.Out, err: cfg.ErrOut,
		result:  make(chan error, 1),
		turns:   make(map[string]bool),
		ended:   make(map[string]bus.Event),
		changed: make(chan struct{}),
	}
}

// expect sets the id of the message whose answer is expected.
func (o *answerWaiter) expect(id string, command bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.id, o.isCommand = id, command
	o.turns[id] = true
}

// handleEvent records that a turn has ended. It makes Receive return if the message's turn waits for people, or has
// ended without sending anything.
func (o *answerWaiter) handleEvent(e bus.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch e.Type {
	case bus.TurnComplete, bus.TurnError:
	case bus.TurnParked:
		if e.Kind == bus.KindNode { // it goes on by itself
			return
		}
		if o.turns[e.Turn] || slices.Contains(e.Causes, o.id) {
			o.finish(fmt.Errorf("%w yet: the turn is waiting for an approval or an answer. `parley approvals list` shows what it's waiting for, and you can reply in an interactive parley chat", ErrFailed))
		}
		return
	default:
		return
	}
	for _, cause := range e.Causes {
		if cause == o.id {
			o.turns[e.Turn] = true
		}
	}
	o.ended[e.Turn] = e
	close(o.changed)
	o.changed = make(chan struct{})
	if o.turns[e.Turn] && e.Type == bus.TurnError && (e.Error == nil || e.Error.Message == "") {
		o.finish(errFromEvent(e)) // the turn sends no message
	}
}

// finish makes Receive return err. The caller holds o.mu.
func (o *answerWaiter) finish(err error) {
	if o.finished {
		return
	}
	o.finished = true
	o.result <- err
}

// errFromEvent returns an ErrFailed with the reason that an event contains.
func errFromEvent(e bus.Event) error {
	if e.Error == nil {
		return ErrFailed
	}
	if e.Error.Message == "" {
		return fmt.Errorf("%w: %s", ErrFailed, clean(e.Error.Code))
	}
	return fmt.Errorf("%w: %s", ErrFailed, clean(e.Error.Message))
}

// send prints a part of the answer to Out, and makes Receive return. If the part says why there is no answer, it
// prints nothing: Receive returns that as an ErrFailed. Other messages to this chat are printed to ErrOut.
func (o *answerWaiter) send(ctx context.Context, part channels.Part) error {
	var end bus.Event
	if turn, answers := bus.Cause(part.Key); answers {
		end = o.waitForEnd(ctx, turn)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	turn, _ := bus.Cause(part.Key)
	switch {
	case !o.turns[turn] || o.finished:
		return printLine(o.err, part.Text)
	case !strings.HasPrefix(part.Key, bus.ReplyID(turn)):
		o.finish(fmt.Errorf("%w: %s", ErrFailed, clean(part.Text))) // the message was not accepted at all
		return nil
	case end.Type == bus.TurnError:
		o.finish(errFromEvent(end))
		return nil
	}
	if err := o.printAnswer(part.Text); err != nil {
		o.finish(err)
		return err
	}
	o.finish(io.EOF)
	return nil
}

// printAnswer prints the answer, as JSON if the configuration says so.
func (o *answerWaiter) printAnswer(text string) error {
	if !o.json {
		return printLine(o.out, text)
	}
	return plainjson.NewEncoder(o.out).Encode(struct {
		Session string `json:"session"`
		Text    string `json:"text"`
	}{o.session, text})
}

// waitForEnd returns the event that ended a turn; if the turn has not ended yet, it waits for at most endEventWait. It
// returns the zero Event if none comes, and at once if none is to be expected, as for a command.
func (o *answerWaiter) waitForEnd(ctx context.Context, turn string) bus.Event {
	timer := time.NewTimer(endEventWait)
	defer timer.Stop()
	for {
		o.mu.Lock()
		end, ended := o.ended[turn]
		change := o.changed
		skip := ended || o.id == "" || (o.isCommand && turn == o.id) || o.finished
		o.mu.Unlock()
		if skip {
			return end
		}
		select {
		case <-change:
		case <-timer.C:
			return bus.Event{}
		case <-ctx.Done():
			return bus.Event{}
		}
	}
}

// printLine writes a text and a newline, without characters that a terminal acts on.
func printLine(w io.Writer, text string) error {
	_, err := fmt.Fprintln(w, strings.TrimRight(clean(text), "\n"))
	return err
}
