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
	session  = "main:console:default"
	patience = 30 * time.Second
)

// A talk is a console at work, and the agent that it talks to: the test.
type talk struct {
	*console.Channel
	events *sqlitebus.Bus
	said   chan bus.Inbound
	ended  chan error
	out    *testlog.Buffer
	beside *testlog.Buffer
}

// begin runs a console whose configuration is filled in.
func begin(t *testing.T, cfg console.Config) *talk {
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
	k := &talk{events: b, said: make(chan bus.Inbound, 10), ended: make(chan error, 1), out: new(testlog.Buffer), beside: new(testlog.Buffer)}
	cfg.Chat, cfg.Session, cfg.Events, cfg.Err = "default", session, b, k.beside
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
		k.ended <- k.Receive(ctx, func(_ context.Context, in bus.Inbound) error {
			k.said <- in
			return nil
		})
	})
	t.Cleanup(running.Wait)
	t.Cleanup(cancel)
	return k
}

// next is what was said next.
func (k *talk) next(t *testing.T) bus.Inbound {
	t.Helper()
	select {
	case in := <-k.said:
		return in
	case err := <-k.ended:
		t.Fatalf("it ended with %v", err)
	case <-time.After(patience):
		t.Fatal("nothing was said")
	}
	return bus.Inbound{}
}

// end is what Receive returned.
func (k *talk) end(t *testing.T) error {
	t.Helper()
	select {
	case err := <-k.ended:
		return err
	case <-time.After(patience):
		t.Fatal("it does not end")
		return nil
	}
}

// emit publishes events of a turn.
func (k *talk) emit(turn string, events ...bus.Event) {
	for _, e := range events {
		e.Session, e.Turn = session, turn
		e.Route = bus.Address{Channel: console.Name, Chat: "default"}
		k.events.Emit(e)
	}
}

// answer sends what answers a message, or with an id without "#" anything else.
func (k *talk) answer(t *testing.T, id, text string) {
	t.Helper()
	_, err := k.Send(t.Context(), bus.Address{Channel: console.Name, Chat: "default"}, channels.Part{Key: id + "/0", Text: text, Plain: text})
	if err != nil {
		t.Errorf("Send: %v", err)
	}
}

// text are the events of a block of text that is said in pieces.
func text(number int, pieces ...string) []bus.Event { return block(number, "text", pieces...) }

// block are the events of a block of some kind that comes in pieces.
func block(number int, kind string, pieces ...string) []bus.Event {
	events := []bus.Event{{Type: bus.BlockStart, Block: number, Kind: kind}}
	for _, p := range pieces {
		events = append(events, bus.Event{Type: bus.BlockDelta, Block: number, Kind: kind, Delta: p})
	}
	return append(events, bus.Event{Type: bus.BlockStop, Block: number, Kind: kind})
}

func TestOnceTheAnswerAloneIsPrinted(t *testing.T) {
	k := begin(t, console.Config{Once: "what is it?"})
	in := k.next(t)
	if in.Text != "what is it?" || in.From.ID != console.Owner || !in.Mentioned || in.Group || in.Kind != bus.Said ||
		in.At != (bus.Address{Channel: "console", Chat: "default"}) {
		t.Errorf("said %+v", in)
	}
	k.emit(in.ID, bus.Event{Type: bus.TurnStart})
	k.emit(in.ID, text(0, "let me ", "look")...)
	k.emit(in.ID, bus.Event{Type: bus.ToolStart, Tool: "read_file", Call: "c1"}, bus.Event{Type: bus.ToolEnd, Tool: "read_file", Call: "c1"})
	k.answer(t, "main.7f", "by the way")
	k.emit(in.ID, text(2, "it is", " a pear")...)
	k.emit(in.ID, bus.Event{Type: bus.TurnComplete})
	k.answer(t, in.ID+"#reply", "it is a \x1b[31mpear\x9b\r")
	if err := k.end(t); !errors.Is(err, io.EOF) {
		t.Errorf("it ended with %v", err)
	}
	if got := k.out.String(); got != "it is a [31mpear\uFFFD\n" {
		t.Errorf("printed %q", got)
	}
	if got := k.beside.String(); got != "by the way\n" {
		t.Errorf("beside it, printed %q", got)
	}
}

func TestOncePipedInputIsOneMessage(t *testing.T) {
	k := begin(t, console.Config{In: strings.NewReader("/help\nand more\n")})
	in := k.next(t)
	if in.Text != "/help\nand more\n" {
		t.Errorf("said %q", in.Text)
	}
	k.answer(t, in.ID+"#reply", "help") // a command's answer waits for no turn
	if err := k.end(t); !errors.Is(err, io.EOF) || k.out.String() != "help\n" {
		t.Errorf("it ended with %v and printed %q", err, k.out)
	}
}

func TestOnceNothingIsAsked(t *testing.T) {
	k := begin(t, console.Config{In: strings.NewReader(" \n")})
	if err := k.end(t); !errors.Is(err, console.ErrFailed) {
		t.Errorf("it ended with %v", err)
	}
}

// A turn that fails is told as an error and prints nothing, whether its end or
// what it says arrives first.
func TestOnceAFailureIsAnError(t *testing.T) {
	for what, play := range map[string]func(k *talk, id string){
		"a turn that fails": func(k *talk, id string) {
			k.emit(id, bus.Event{Type: bus.TurnError, Error: &bus.Failure{Code: "failed", Message: "no model"}})
			k.answer(t, id+"#reply", "no model")
		},
		"a turn that is cancelled": func(k *talk, id string) {
			k.emit(id, bus.Event{Type: bus.TurnError, Error: &bus.Failure{Code: "cancelled"}})
		},
		"a message that was not taken": func(k *talk, id string) {
			k.answer(t, id+"#refused", "too many")
		},
		"a turn that waits for somebody": func(k *talk, id string) {
			k.emit(id, bus.Event{Type: bus.TurnParked})
		},
		"an earlier turn that took it in and waits for somebody": func(k *talk, id string) {
			k.emit("earlier", bus.Event{Type: bus.TurnParked, Causes: []string{"earlier", id}})
		},
	} {
		t.Run(what, func(t *testing.T) {
			k := begin(t, console.Config{Once: "hello"})
			play(k, k.next(t).ID)
			if err := k.end(t); !errors.Is(err, console.ErrFailed) {
				t.Errorf("it ended with %v", err)
			}
			if k.out.String() != "" {
				t.Errorf("printed %q", k.out)
			}
		})
	}
}

// A message may be answered by a turn that was under way when it came.
func TestOnceAnotherTurnAnswers(t *testing.T) {
	k := begin(t, console.Config{Once: "and this?"})
	in := k.next(t)
	k.emit("console:earlier", bus.Event{Type: bus.TurnComplete, Causes: []string{"console:earlier", in.ID}})
	k.answer(t, "console:earlier#reply", "both")
	if err := k.end(t); !errors.Is(err, io.EOF) || k.out.String() != "both\n" {
		t.Errorf("it ended with %v and printed %q", err, k.out)
	}
}

func TestOnceEndsWithItsContext(t *testing.T) {
	r, w := io.Pipe()
	defer func() { _ = w.Close() }() // it always succeeds
	k := &talk{out: new(testlog.Buffer), ended: make(chan error, 1)}
	var err error
	if k.Channel, err = console.New(console.Config{Chat: "default", In: r, Out: k.out}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { k.ended <- k.Receive(ctx, nil) }()
	cancel()
	if err := k.end(t); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

func TestAPublishThatFailsIsTriedAgainUnderTheSameID(t *testing.T) {
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
	k := begin(t, console.Config{Once: "hello"})
	_, err := k.Send(t.Context(), bus.Address{Channel: console.Name, Chat: "work"}, channels.Part{Key: "x", Text: "secret"})
	e, ok := errors.AsType[*channels.SendError](err)
	if !ok || e.Fault != channels.Retry || !e.RateLimited {
		t.Errorf("got %v", err)
	}
	if s := fmt.Sprint(k.out, k.beside); strings.Contains(s, "secret") {
		t.Errorf("printed %q", s)
	}
}
