package worker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/agent"
	"parley/agent/journal"
	"parley/agent/llm"
	"parley/agent/sessioncache"
	"parley/bus"
	"parley/sessions"
	"parley/tools"
)

// errNotRemembered is the error of opening a log that isn't in memory.
var errNotRemembered = errors.New("the log has to be read")

// An unreadableStore is a store whose logs can't be opened.
type unreadableStore struct{}

func (unreadableStore) Open(context.Context, string, int64) (sessions.Log, error) {
	return nil, errNotRemembered
}

// checkRemembered checks, at the end of each test of this package, that the sessions in its workers' memory are equal
// to their logs.
func (b *bench) checkRemembered() {
	if b.t.Failed() {
		return
	}
	all, err := b.store.List(context.Background(), "", 1000)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, w := range b.caches {
		for _, s := range all {
			run, err := w.Begin(context.Background(), unreadableStore{}, s.Key, math.MaxInt64, false, slog.New(slog.DiscardHandler))
			if errors.Is(err, errNotRemembered) {
				continue
			}
			if err != nil {
				b.t.Fatal(err)
			}
			b.checkSameRecords(s.Key, run.Journal.Records(), b.read(s.Key, math.MaxInt64))
		}
	}
}

// read returns the records of a session as its log has them.
func (b *bench) read(key string, fence int64) []journal.Record {
	b.t.Helper()
	log, err := b.store.Open(context.Background(), key, fence)
	if err != nil {
		b.t.Fatal(err)
	}
	j, err := journal.Open(log, slog.New(slog.DiscardHandler))
	if err != nil {
		b.t.Fatal(err)
	}
	return j.Records()
}

// untouched returns records as they are read from a log, without cached renderings.
func untouched(records []journal.Record) []journal.Record {
	var all []journal.Record
	for _, r := range records {
		e := sessions.Entry{N: r.N, Turn: r.Turn, Kind: r.Kind, At: r.At(), Cause: r.Cause, Person: r.Person, Call: r.Call, Data: make([]byte, r.Size)}
		all = append(all, journal.NewRecord(e, r.Data))
	}
	return all
}

func (b *bench) checkSameRecords(key string, remembered, written []journal.Record) {
	b.t.Helper()
	b.compared++
	if len(remembered) == 0 && len(written) == 0 || reflect.DeepEqual(untouched(remembered), untouched(written)) {
		return
	}
	describe := func(records []journal.Record) (list []string) {
		for _, r := range records {
			list = append(list, fmt.Sprintf("%d %s %s %s %d %v", r.N, r.Turn, r.Kind, r.At(), r.Size, r.Data))
		}
		return list
	}
	b.t.Errorf("session %s: remembered is\n%q\nwritten is\n%q", key, describe(remembered), describe(written))
}

// A session that this process served last is not read again, whatever happened in it.
func TestAWarmSessionIsNotReadAgain(t *testing.T) {
	b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
		if newestUserText(r) == "use a tool" && len(toolResults(r)) == 0 {
			return callsAnswer(`echo {"say":"x"}`), nil
		}
		return textAnswer(fmt.Sprint("heard ", newestUserText(r), " among ", len(r.Messages))), nil
	}, echo("echo", tools.Once, nil))
	counted := &countedStore{Store: b.store}
	b.sessions = counted
	stop := b.run()
	for n, said := range []string{"one", "use a tool", "three", "/new", "four", "five", "/new", "six"} {
		id := b.say("1", "ann", said)
		b.wantReply(id, "")
		b.settled()
		if got := counted.opened.Load(); got != 1 {
			t.Fatalf("after %d messages the log was read %d times", n+1, got)
		}
	}
	b.wantReply(b.say("1", "ann", "seven"), "heard seven among 3")
	stop()
	// The next process reads it, and this one then knows that it must.
	other := b.run()
	b.wantReply(b.say("1", "ann", "eight"), "heard eight among 5")
	b.settled()
	other()
	if got := counted.opened.Load(); got != 2 {
		t.Errorf("the log was read %d times by two processes", got)
	}
	b.checkRemembered()
	if b.compared != 1 {
		t.Errorf("%d of two processes remember the session as it is", b.compared)
	}
}

// A countedStore counts the logs that are read.
type countedStore struct {
	agent.Store
	opened atomic.Int64
}

func (c *countedStore) Open(ctx context.Context, key string, fence int64) (sessions.Log, error) {
	c.opened.Add(1)
	return c.Store.Open(ctx, key, fence)
}

// By its first entry, a process that remembers a session finds out that another has served it since, and continues with
// what the log has.
func TestASessionOfAnotherProcessIsReadAgain(t *testing.T) {
	b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
		return textAnswer(fmt.Sprint("heard ", newestUserText(r), " among ", len(r.Messages))), nil
	})
	counted := &countedStore{Store: b.store}
	b.sessions = counted
	var warnings bytes.Buffer
	b.log = slog.NewTextHandler(&warnings, &slog.HandlerOptions{Level: slog.LevelWarn})
	workers := []*sessioncache.Journals{sessioncache.New(sessioncache.Bounds{}), sessioncache.New(sessioncache.Bounds{})}
	for n, c := range []struct{ said, want string }{
		{"one", "among 1"}, {"two", "among 3"}, {"three", "among 5"}, {"/new", ""}, {"four", "heard four among 1"}, {"five", "among 3"},
	} {
		stop := b.runWith(workers[n%2])
		b.wantReply(b.say("1", "ann", c.said), c.want)
		b.settled()
		stop()
		if got := counted.opened.Load(); got != int64(n+1) {
			t.Errorf("after %q the log was read %d times, want %d", c.said, got, n+1)
		}
	}
	if warnings.Len() > 0 {
		t.Errorf("the worker warns of:\n%s", &warnings)
	}
	if got, want := strings.Count(b.kinds("1"), "turn_started"), 5; got != want {
		t.Errorf("%d turns were begun, want %d: %s", got, want, b.kinds("1"))
	}
}

// Before a step that doesn't begin with an entry, such as repeating a reply, the log is asked whether the cached
// records are current.
func TestTheLogConfirmsACachedReply(t *testing.T) {
	b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
		return textAnswer("heard " + newestUserText(r)), nil
	})
	counted := &countedStore{Store: b.store}
	b.sessions = counted
	first := sessioncache.New(sessioncache.Bounds{})
	stop := b.runWith(first)
	id := b.say("1", "ann", "one")
	b.wantReply(id, "heard one")
	b.settled()
	stop()
	if _, err := b.store.EraseSession(t.Context(), "main:test:1"); err != nil {
		t.Fatal(err)
	}
	body, err := bus.Inbound{ID: id, Kind: bus.Said, From: bus.Person{ID: "test:ann"}, At: bus.Address{Channel: "test", Chat: "1"}, Text: "one"}.Encode()
	if err == nil {
		err = b.bus.Publish(t.Context(), bus.InboundTopic, bus.Message{ID: "again-" + id, Key: "main:test:1", Body: body})
	}
	if err != nil {
		t.Fatal(err)
	}
	b.runWith(first)
	b.settled()
	b.wantSilence()
	if got := counted.opened.Load(); got != 2 {
		t.Errorf("the log was read %d times, want once more after it was erased", got)
	}
}

// If a turn's beginning is repeated because the cached records were not current, it counts as one turn of its person.
func TestATurnThatIsBegunAnewIsCountedOnce(t *testing.T) {
	b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
		return textAnswer("heard " + newestUserText(r)), nil
	})
	b.limit.TurnsHour = 2
	b.run()
	b.wantReply(b.say("1", "ann", "one"), "heard one")
	b.settled()
	if _, err := b.store.EraseSession(t.Context(), "main:test:1"); err != nil {
		t.Fatal(err)
	}
	b.wantReply(b.say("1", "ann", "two"), "heard two")
	b.settled()
	b.wantReply(b.say("1", "ann", "three"), "2 times in the past hour")
}

// A turn that another process has suspended is resumed, although its message is known and the process that gets the
// message again remembers nothing of the turn.
func TestATurnSuspendedByAnotherProcessIsResumed(t *testing.T) {
	asked := make(chan struct{})
	var cut atomic.Bool
	b := newBench(t, func(ctx context.Context, r llm.Request) (llm.Answer, error) {
		if newestUserText(r) == "two" && cut.CompareAndSwap(false, true) {
			close(asked)
			<-ctx.Done()
			return llm.Answer{}, ctx.Err()
		}
		return textAnswer("heard " + newestUserText(r)), nil
	})
	first := sessioncache.New(sessioncache.Bounds{})
	stop := b.runWith(first)
	b.wantReply(b.say("1", "ann", "one"), "heard one")
	b.settled()
	stop()
	b.drain = time.Millisecond
	stop = b.run()
	id := b.say("1", "ann", "two")
	<-asked
	stop()
	b.drain = 5 * time.Second
	b.runWith(first)
	b.wantReply(id, "heard two")
	b.settled()
	if got, want := b.kinds("1"), "turn_started user text usage turn_done published turn_started user suspended resumed text usage turn_done published"; got != want {
		t.Errorf("the log is %q, want %q", got, want)
	}
}

// If a message arrives again after its turn is over, the process that gets it publishes the reply again: the bus may
// have lost the first one. The progress of such a turn is only in the log.
func TestAReplyIsPublishedAgainLongAfterItsTurn(t *testing.T) {
	for name, forget := range map[string]bool{"remembered": false, "read": true} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
				return textAnswer("heard " + newestUserText(r)), nil
			})
			published := &publishRecorder{Bus: b.carrier}
			b.carrier = published
			first := sessioncache.New(sessioncache.Bounds{})
			stop := b.runWith(first)
			id := b.say("1", "ann", "one")
			b.wantReply(id, "heard one")
			b.wantReply(b.say("1", "ann", "two"), "heard two")
			b.settled()
			stop()
			if forget {
				first.Clear()
			}
			published.ids = nil
			stop = b.runWith(first)
			body, err := bus.Inbound{ID: id, Kind: bus.Said, From: bus.Person{ID: "test:ann"}, At: bus.Address{Channel: "test", Chat: "1"}, Text: "one"}.Encode()
			if err == nil {
				err = b.bus.Publish(t.Context(), bus.InboundTopic, bus.Message{ID: "again-" + id, Key: "main:test:1", Body: body})
			}
			if err != nil {
				t.Fatal(err)
			}
			b.settled()
			stop()
			if want := []string{bus.ReplyID(id)}; !slices.Equal(published.ids, want) {
				t.Errorf("%q were published, want %q", published.ids, want)
			}
			if got, want := b.kinds("1"), "turn_started user text usage turn_done published turn_started user text usage turn_done published"; got != want {
				t.Errorf("the log is %q, want %q", got, want)
			}
		})
	}
}

// A publishRecorder records what the worker publishes outside of the log's writes.
type publishRecorder struct {
	bus.Bus
	mu  sync.Mutex
	ids []string
}

func (p *publishRecorder) Publish(ctx context.Context, topic bus.Topic, m bus.Message) error {
	p.mu.Lock()
	p.ids = append(p.ids, m.ID)
	p.mu.Unlock()
	return p.Bus.Publish(ctx, topic, m)
}
