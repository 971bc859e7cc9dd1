package console_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/bus"
	"parley/bus/sqlitebus"
	"parley/channels"
	"parley/channels/console"
	"parley/tools/testlog"
)

const (
	session     = "main:console:default"
	testTimeout = 2 * time.Minute
)

// A consoleRun is a running console; the test plays its agent.
type consoleRun struct {
	*console.Channel
	events   *sqlitebus.Bus
	messages chan bus.Inbound
	endError chan error
	out      *testlog.Buffer
	errOut   *testlog.Buffer
}

// startConsole runs a console, with the missing parts of its configuration filled in.
func startConsole(t *testing.T, cfg console.Config) *consoleRun {
	t.Helper()
	b, err := sqlitebus.Open(t.Context(), sqlitebus.Config{Path: filepath.Join(t.TempDir(), "bus.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	k := &consoleRun{events: b, messages: make(chan bus.Inbound, 10), endError: make(chan error, 1), out: new(testlog.Buffer), errOut: new(testlog.Buffer)}
	cfg.Chat, cfg.Session, cfg.Events, cfg.ErrOut = "default", session, b, k.errOut
	if cfg.Out == nil {
		cfg.Out = k.out
	}
	if cfg.In == nil {
		cfg.In = strings.NewReader("not to be read")
	}
	if k.Channel, err = console.New(cfg); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		k.endError <- k.Receive(ctx, func(_ context.Context, in bus.Inbound) error {
			k.messages <- in
			return nil
		})
	})
	t.Cleanup(running.Wait)
	t.Cleanup(cancel)
	return k
}

// nextMessage waits for the next message that is published, and returns it.
func (k *consoleRun) nextMessage(t *testing.T) bus.Inbound {
	t.Helper()
	select {
	case in := <-k.messages:
		return in
	case err := <-k.endError:
		t.Fatalf("it ended with %v", err)
	case <-time.After(testTimeout):
		t.Fatal("nothing was said")
	}
	return bus.Inbound{}
}

// awaitEnd returns the error with which Receive returned.
func (k *consoleRun) awaitEnd(t *testing.T) error {
	t.Helper()
	select {
	case err := <-k.endError:
		return err
	case <-time.After(testTimeout):
		t.Fatal("it does not end")
		return nil
	}
}

// emit emits events of a turn.
func (k *consoleRun) emit(turn string, events ...bus.Event) {
	for _, e := range events {
		e.Session, e.Turn = session, turn
		e.Route = bus.Address{Channel: console.Name, Chat: "default"}
		k.events.Emit(e)
	}
}

// sendAnswer sends the answer to a message, given its id; an id without "#" makes it another message.
func (k *consoleRun) sendAnswer(t *testing.T, id, text string) {
	t.Helper()
	_, err := k.Send(t.Context(), bus.Address{Channel: console.Name, Chat: "default"}, channels.Part{Key: id + "/0", Text: text, Plain: text})
	if err != nil {
		t.Errorf("Send: %v", err)
	}
}

// textEvents returns the events of a block of text that arrives in pieces.
func textEvents(number int, pieces ...string) []bus.Event { return block(number, "text", pieces...) }

// block returns the events of a block of a kind that arrives in pieces.
func block(number int, kind string, pieces ...string) []bus.Event {
	events := []bus.Event{{Type: bus.BlockStart, Block: number, Kind: kind}}
	for _, p := range pieces {
		events = append(events, bus.Event{Type: bus.BlockDelta, Block: number, Kind: kind, Delta: p})
	}
	return append(events, bus.Event{Type: bus.BlockStop, Block: number, Kind: kind})
}

func TestOncePrintsOnlyTheAnswer(t *testing.T) {
	k := startConsole(t, console.Config{Once: "what is it?"})
	in := k.nextMessage(t)
	if in.Text != "what is it?" || in.From.ID != console.Owner || !in.Mentioned || in.Group || in.Kind != bus.Said ||
		in.At != (bus.Address{Channel: "console", Chat: "default"}) {
		t.Errorf("said %+v", in)
	}
	k.emit(in.ID, bus.Event{Type: bus.TurnStart})
	k.emit(in.ID, textEvents(0, "let me ", "look")...)
	k.emit(in.ID, bus.Event{Type: bus.ToolStart, Tool: "read_file", Call: "c1"}, bus.Event{Type: bus.ToolEnd, Tool: "read_file", Call: "c1"})
	k.sendAnswer(t, "main.7f", "by the way")
	k.emit(in.ID, textEvents(2, "it is", " a pear")...)
	k.emit(in.ID, bus.Event{Type: bus.TurnComplete})
	k.sendAnswer(t, in.ID+"#reply", "it is a \x1b[31mpear\x9b\r")
	if err := k.awaitEnd(t); !errors.Is(err, io.EOF) {
		t.Errorf("it ended with %v", err)
	}
	if got := k.out.String(); got != "it is a [31mpear\uFFFD\n" {
		t.Errorf("printed %q", got)
	}
	if got := k.errOut.String(); got != "by the way\n" {
		t.Errorf("beside it, printed %q", got)
	}
}

func TestOnceSendsPipedInputAsOneMessage(t *testing.T) {
	k := startConsole(t, console.Config{In: strings.NewReader("/help\nand more\n")})
	in := k.nextMessage(t)
	if in.Text != "/help\nand more\n" {
		t.Errorf("said %q", in.Text)
	}
	k.sendAnswer(t, in.ID+"#reply", "help") // the answer to a command does not wait for a turn
	if err := k.awaitEnd(t); !errors.Is(err, io.EOF) || k.out.String() != "help\n" {
		t.Errorf("it ended with %v and printed %q", err, k.out)
	}
}

func TestOnceWithoutTextFails(t *testing.T) {
	k := startConsole(t, console.Config{In: strings.NewReader(" \n")})
	if err := k.awaitEnd(t); !errors.Is(err, console.ErrFailed) {
		t.Errorf("it ended with %v", err)
	}
}

// A failed turn is returned as an error, and nothing is printed, whether its last event or its message arrives
// first.
func TestOnceReturnsAFailedTurnAsAnError(t *testing.T) {
	for what, play := range map[string]func(k *consoleRun, id string){
		"a turn that fails": func(k *consoleRun, id string) {
			k.emit(id, bus.Event{Type: bus.TurnError, Error: &bus.Failure{Code: "failed", Message: "no model"}})
			k.sendAnswer(t, id+"#reply", "no model")
		},
		"a turn that is cancelled": func(k *consoleRun, id string) {
			k.emit(id, bus.Event{Type: bus.TurnError, Error: &bus.Failure{Code: "cancelled"}})
		},
		"a message that was not taken": func(k *consoleRun, id string) {
			k.sendAnswer(t, id+"#refused", "too many")
		},
		"a turn that waits for somebody": func(k *consoleRun, id string) {
			k.emit(id, bus.Event{Type: bus.TurnParked})
		},
		"an earlier turn that took it in and waits for somebody": func(k *consoleRun, id string) {
			k.emit("earlier", bus.Event{Type: bus.TurnParked, Causes: []string{"earlier", id}})
		},
	} {
		t.Run(what, func(t *testing.T) {
			k := startConsole(t, console.Config{Once: "hello"})
			play(k, k.nextMessage(t).ID)
			if err := k.awaitEnd(t); !errors.Is(err, console.ErrFailed) {
				t.Errorf("it ended with %v", err)
			}
			if k.out.String() != "" {
				t.Errorf("printed %q", k.out)
			}
		})
	}
}

// A message may be answered by a turn that was running when the message arrived.
func TestOnceAcceptsTheAnswerOfAnotherTurn(t *testing.T) {
	k := startConsole(t, console.Config{Once: "and this?"})
	in := k.nextMessage(t)
	k.emit("console:earlier", bus.Event{Type: bus.TurnComplete, Causes: []string{"console:earlier", in.ID}})
	k.sendAnswer(t, "console:earlier#reply", "both")
	if err := k.awaitEnd(t); !errors.Is(err, io.EOF) || k.out.String() != "both\n" {
		t.Errorf("it ended with %v and printed %q", err, k.out)
	}
}

func TestOnceEndsWithItsContext(t *testing.T) {
	r, w := io.Pipe()
	defer func() { _ = w.Close() }() // closing never fails
	k := &consoleRun{out: new(testlog.Buffer), endError: make(chan error, 1)}
	var err error
	if k.Channel, err = console.New(console.Config{Chat: "default", In: r, Out: k.out}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { k.endError <- k.Receive(ctx, nil) }()
	cancel()
	if err := k.awaitEnd(t); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

func TestAFailedPublishIsRetriedWithTheSameID(t *testing.T) {
	c, err := console.New(console.Config{Chat: "default", Once: "hello", In: strings.NewReader(""), Out: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var ids []string
	err = c.Receive(ctx, func(_ context.Context, in bus.Inbound) error {
		if ids = append(ids, in.ID); len(ids) == 3 {
			cancel()
			return nil
		}
		return errors.New("disk is full")
	})
	if err != nil || len(ids) != 3 || ids[0] != ids[1] || ids[1] != ids[2] {
		t.Errorf("Receive = %v after %v", err, ids)
	}
}

func TestAMessageForAnotherChatWaits(t *testing.T) {
	k := startConsole(t, console.Config{Once: "hello"})
	_, err := k.Send(t.Context(), bus.Address{Channel: console.Name, Chat: "work"}, channels.Part{Key: "x", Text: "secret"})
	e, ok := errors.AsType[*channels.SendError](err)
	if !ok || e.Fault != channels.Retry || !e.RateLimited {
		t.Errorf("got %v", err)
	}
	if s := fmt.Sprint(k.out, k.errOut); strings.Contains(s, "secret") {
		t.Errorf("printed %q", s)
	}
}
