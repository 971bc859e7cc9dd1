package worker_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent/llm"
	"parley/bus"
	"parley/sessions"
)

// A titleModel is the model named namer, which makes titles.
type titleModel struct{ model }

func (titleModel) Info() llm.Info { return llm.Info{Name: "namer"} }

// newTitleBench returns a bench whose agent has a model for titles with these answers, and a counter of how often it
// was asked.
func newTitleBench(t *testing.T, answer model) (*bench, *atomic.Int64) {
	t.Helper()
	b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
		return textAnswer("I heard " + newestUserText(r)), nil
	})
	var asked atomic.Int64
	b.agent.Titles = titleModel{func(ctx context.Context, r llm.Request) (llm.Answer, error) {
		asked.Add(1)
		return answer(ctx, r)
	}}
	return b, &asked
}

// title returns the session's title in lists.
func (b *bench) title(chat string) string {
	b.t.Helper()
	list, err := b.store.List(b.t.Context(), "", 100)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, info := range list {
		if info.Key == "main:test:"+chat {
			return info.Title
		}
	}
	return "no session"
}

// wantTitle waits until no work is left, and fails the test unless the session has that title.
func (b *bench) wantTitle(chat, want string) {
	b.t.Helper()
	b.settled()
	if got := b.title(chat); got != want {
		b.t.Errorf("the title is %q, want %q", got, want)
	}
}

// A model makes a title once, from the first words and the answer to them, and once more in a new conversation. The log
// has its cost.
func TestAModelMakesATitle(t *testing.T) {
	var got atomic.Value
	b, asked := newTitleBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
		got.Store(r.Messages[0].Blocks[0].Text)
		return textAnswer("\n**\"Baking bread at home: one two three four five six\"**\nand more"), nil
	})
	b.run()
	b.wantReply(b.say("7", "7", "How do I bake bread?"), "I heard")
	b.wantTitle("7", "Baking bread at home: one two three four")
	if text, _ := got.Load().(string); !strings.Contains(text, "How do I bake bread?") || !strings.Contains(text, "I heard How do I bake bread?") {
		t.Errorf("it was made of %q", text)
	}
	b.wantReply(b.say("7", "7", "and butter?"), "I heard")
	b.wantTitle("7", "Baking bread at home: one two three four")
	if n := asked.Load(); n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
	b.wantReply(b.say("7", "7", "/new"), "")
	b.wantTitle("7", "")
	b.wantReply(b.say("7", "7", "the moon"), "I heard")
	b.wantTitle("7", "Baking bread at home: one two three four")
	if n := asked.Load(); n != 2 {
		t.Errorf("the model was asked %d times", n)
	}
	used := 0
	for e, err := range b.store.Read(t.Context(), "main:test:7", 1) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind != sessions.KindUsage {
			continue
		}
		u, err := sessions.Decode[sessions.Usage](e)
		if err != nil {
			t.Fatal(err)
		}
		if u.Model == "namer" && u.Input == 10 && u.Output == 5 && e.Person == "test:7" && u.Agent == "main" {
			used++
		}
	}
	if used != 2 {
		t.Errorf("the log has the cost of %d titles", used)
	}
	spent, err := b.store.Spent(t.Context(), "test:7", time.Now())
	if err != nil || spent != 5*15 {
		t.Errorf("%d tokens are spent, %v: those of three answers and two titles are 75", spent, err)
	}
}

// A model that fails, or says nothing, leaves the first words, and fails nothing else.
func TestATitleThatIsNotMade(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]model{
		"it fails": func(context.Context, llm.Request) (llm.Answer, error) {
			return llm.Answer{}, &llm.Error{Fault: llm.Busy}
		},
		"it is broken":     func(context.Context, llm.Request) (llm.Answer, error) { return llm.Answer{}, errors.New("broken") },
		"it says nothing":  func(context.Context, llm.Request) (llm.Answer, error) { return textAnswer(" ** \n\"\"\n"), nil },
		"it calls a tool":  func(context.Context, llm.Request) (llm.Answer, error) { return callsAnswer(`echo {}`), nil },
		"it may not be so": nil,
	} {
		t.Run(name, func(t *testing.T) {
			b, asked := newTitleBench(t, answer)
			if answer == nil {
				b.agent.MayTitle = func(context.Context) (bool, error) { return false, nil }
			}
			b.run()
			b.wantReply(b.say("7", "7", "How do I bake bread?"), "I heard")
			b.wantTitle("7", "How do I bake bread?")
			b.wantReply(b.say("7", "7", "and butter?"), "I heard")
			b.wantTitle("7", "How do I bake bread?")
			if n := asked.Load(); n > 1 || answer == nil && n > 0 {
				t.Errorf("the model was asked %d times", n)
			}
		})
	}
}

// Nobody waits for a title: the next message ends the request for it, and so does the end of the process.
func TestATitleDelaysNothing(t *testing.T) {
	asking := make(chan struct{}, 9)
	b, asked := newTitleBench(t, func(ctx context.Context, _ llm.Request) (llm.Answer, error) {
		asking <- struct{}{}
		<-ctx.Done()
		return llm.Answer{}, ctx.Err()
	})
	stop := b.run()
	b.wantReply(b.say("7", "7", "How do I bake bread?"), "I heard")
	<-asking
	b.wantReply(b.say("7", "7", "and butter?"), "I heard")
	b.wantTitle("7", "How do I bake bread?")
	b.wantReply(b.say("8", "8", "the moon"), "I heard")
	<-asking
	began := time.Now()
	stop()
	if took := time.Since(began); took > b.drain {
		t.Errorf("the worker has ended after %v", took)
	}
	b.run()
	b.wantTitle("8", "the moon")
	if n := asked.Load(); n != 2 {
		t.Errorf("the model was asked %d times", n)
	}
}

// If a person is forgotten while a title is made from their words, the words are not in the title.
func TestATitleOfWhoIsForgottenMeanwhile(t *testing.T) {
	var b *bench
	var forget atomic.Bool
	b, _ = newTitleBench(t, func(ctx context.Context, _ llm.Request) (llm.Answer, error) {
		if forget.Load() {
			if _, err := b.store.ErasePerson(ctx, "test:7"); err != nil {
				t.Error(err)
			}
		}
		return textAnswer("The secret of seven"), nil
	})
	b.run()
	b.wantReply(b.say("1", "7", "a secret"), "I heard")
	b.wantTitle("1", "The secret of seven")
	b.wantReply(b.say("1", "8", "the moon"), "I heard")
	b.settled()
	forget.Store(true)
	b.wantReply(b.say("2", "7", "another secret"), "I heard")
	b.wantTitle("2", "no session")
	b.wantTitle("1", "the moon")
}

// A countingBus counts turns by their leases, like a bus that several processes share: a lease counts for its group
// until it ends or leaves.
type countingBus struct {
	bus.Bus
	mu     sync.Mutex
	groups map[int64]string // by fence
}

type countedLease struct {
	bus.Lease
	all *countingBus
}

func (c *countingBus) Claim(ctx context.Context, topic bus.Topic) (bus.Lease, error) {
	l, err := c.Bus.Claim(ctx, topic)
	if err != nil {
		return nil, err
	}
	return countedLease{l, c}, nil
}

func (l countedLease) count(group string, atOnce int) error {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	delete(l.all.groups, l.Claim().Fence)
	running := 0
	for _, other := range l.all.groups {
		if other == group {
			running++
		}
	}
	if running >= atOnce {
		return bus.ErrBusy
	}
	if group != "" {
		l.all.groups[l.Claim().Fence] = group
	}
	return nil
}

func (l countedLease) Begin(_ context.Context, q bus.Quota) error { return l.count(q.Group, q.AtOnce) }

func (l countedLease) Resume(_ context.Context, group string) error { return l.count(group, 1<<30) }

func (l countedLease) Leave(context.Context) error { return l.count("", 1<<30) }

func (l countedLease) Settle(ctx context.Context, end bus.End) error {
	return errors.Join(l.count("", 1<<30), l.Lease.Settle(ctx, end))
}

// While a title is made, the person's other conversations are answered: making it doesn't count as the person's turn.
func TestATitleCountsAsNoTurn(t *testing.T) {
	asking, end := make(chan struct{}, 9), make(chan struct{})
	b, _ := newTitleBench(t, func(context.Context, llm.Request) (llm.Answer, error) {
		asking <- struct{}{}
		<-end
		return textAnswer("Baking bread"), nil
	})
	defer close(end)
	b.limit.Turns = 1
	b.carrier = &countingBus{Bus: b.bus, groups: map[int64]string{}}
	b.run()
	b.wantReply(b.say("7", "7", "How do I bake bread?"), "I heard")
	<-asking
	other := b.say("8", "7", "the moon")
	if out := b.replyWithin(5 * time.Second); out.ID != other+"#reply" {
		t.Errorf("the reply is %+v", out)
	}
}

// The worker stops waiting for a title that doesn't come.
func TestATitleIsNotWaitedForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asking := make(chan struct{}, 9)
		b, _ := newTitleBench(t, func(ctx context.Context, _ llm.Request) (llm.Answer, error) {
			asking <- struct{}{}
			<-ctx.Done()
			return llm.Answer{}, ctx.Err()
		})
		defer b.run()()
		b.wantReply(b.say("7", "7", "How do I bake bread?"), "I heard")
		<-asking
		began := time.Now()
		b.settled()
		if took := time.Since(began); took > 11*time.Second {
			t.Errorf("the session was worked on for %v more", took)
		}
	})
}

// A first turn that takes long has a title, too.
func TestATitleOfALongTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := newTitleBench(t, func(context.Context, llm.Request) (llm.Answer, error) { return textAnswer("Baking bread"), nil })
		b.agent.Model = model(func(_ context.Context, r llm.Request) (llm.Answer, error) {
			<-time.After(2 * time.Minute)
			return textAnswer("I heard " + newestUserText(r)), nil
		})
		defer b.run()()
		b.say("7", "7", "How do I bake bread?")
		<-time.After(3 * time.Minute)
		b.wantTitle("7", "Baking bread")
	})
}
