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

// errCold is the error of opening a log that nobody remembers.
var errCold = errors.New("the log has to be read")

// An unread is a store in which no log is read.
type unread struct{}

func (unread) Open(context.Context, string, int64) (sessions.Log, error) { return nil, errCold }

// rememberedIsWritten looks, at the end of each test of this package, that what its
// workers remember of sessions is what anybody would read in their logs.
func (b *bench) rememberedIsWritten() {
	if b.t.Failed() {
		return
	}
	all, err := b.store.List(context.Background(), "", 1000)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, w := range b.caches {
		for _, s := range all {
			run, err := w.Begin(context.Background(), unread{}, s.Key, math.MaxInt64, false, slog.New(slog.DiscardHandler))
			if errors.Is(err, errCold) {
				continue
			}
			if err != nil {
				b.t.Fatal(err)
			}
			b.sameRecords(s.Key, run.Journal.Records(), b.read(s.Key, math.MaxInt64))
		}
	}
}

// read returns the records of a session as they are read in its log.
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

// untouched returns records as they are read, of which nothing was made.
func untouched(records []journal.Record) []journal.Record {
	var all []journal.Record
	for _, r := range records {
		e := sessions.Entry{N: r.N, Turn: r.Turn, Kind: r.Kind, At: r.At(), Cause: r.Cause, Person: r.Person, Call: r.Call, Data: make([]byte, r.Size)}
		all = append(all, journal.NewRecord(e, r.Data))
	}
	return all
}

func (b *bench) sameRecords(key string, remembered, written []journal.Record) {
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

// A session that this process had last is not read again, whatever was done in it.
func TestAWarmSessionIsNotReadAgain(t *testing.T) {
	b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
		if heard(r) == "use a tool" && len(results(r)) == 0 {
			return calls(`echo {"say":"x"}`), nil
		}
		return text(fmt.Sprint("heard ", heard(r), " among ", len(r.Messages))), nil
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
	b.rememberedIsWritten()
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

// A process that remembers a session finds out by its first entry that another has worked on
// it since, and answers by what is in the log.
func TestASessionThatAnotherHasHadSinceIsReadAgain(t *testing.T) {
	b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
		return text(fmt.Sprint("heard ", heard(r), " among ", len(r.Messages))), nil
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

// Before anything is done that does not begin with an entry, such as saying again what was
// answered, the log is asked whether it is still what is remembered.
func TestWhatIsRememberedIsConfirmedBeforeItIsSaidAgain(t *testing.T) {
	b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
		return text("heard " + heard(r)), nil
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
	b.silent()
	if got := counted.opened.Load(); got != 2 {
		t.Errorf("the log was read %d times, want once more after it was erased", got)
	}
}

// A turn whose beginning is tried again, because the log was not what is remembered, is one turn
// of its person's.
func TestATurnThatIsBegunAnewIsCountedOnce(t *testing.T) {
	b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) { return text("heard " + heard(r)), nil })
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

// A turn that another process has suspended is resumed, although its message is known and the
// process that gets it again remembers nothing of it.
func TestATurnThatAnotherHasSuspendedIsResumed(t *testing.T) {
	asked := make(chan struct{})
	var cut atomic.Bool
	b := newBench(t, func(ctx context.Context, r llm.Request) (llm.Answer, error) {
		if heard(r) == "two" && cut.CompareAndSwap(false, true) {
			close(asked)
			<-ctx.Done()
			return llm.Answer{}, ctx.Err()
		}
		return text("heard " + heard(r)), nil
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

// A message that comes again after its turn is over has the reply published again, by whoever gets
// it: the bus may have lost what was published before. The course of such a turn is in the log only.
func TestAReplyIsPublishedAgainLongAfterItsTurn(t *testing.T) {
	for name, forget := range map[string]bool{"remembered": false, "read": true} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) { return text("heard " + heard(r)), nil })
			published := &publishedBus{Bus: b.carrier}
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

// A publishedBus notes what the worker publishes outside of the log's writes.
type publishedBus struct {
	bus.Bus
	mu  sync.Mutex
	ids []string
}

func (p *publishedBus) Publish(ctx context.Context, topic bus.Topic, m bus.Message) error {
	p.mu.Lock()
	p.ids = append(p.ids, m.ID)
	p.mu.Unlock()
	return p.Bus.Publish(ctx, topic, m)
}
