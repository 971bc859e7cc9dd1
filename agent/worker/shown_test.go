package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/agent"
	"parley/agent/blocks"
	"parley/agent/llm"
	"parley/bus"
	"parley/sessions"
	"parley/tools"
)

// A watcher follows the events of the first chat, as watchers of the session and of the channel get them.
type watcher struct {
	b       *bench
	session chan bus.Event
	channel chan bus.Event
	blocks  map[int]blocks.Block
	stopped map[int]bool
	course  []string
	ended   bool
}

// watch follows the events of the first chat.
func (b *bench) watch() *watcher {
	b.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	b.t.Cleanup(cancel)
	follow := func(name bus.Feed) chan bus.Event {
		feed, err := b.bus.Subscribe(ctx, name, 0)
		if err != nil {
			b.t.Fatal(err)
		}
		all := make(chan bus.Event, 10_000)
		go func() {
			for e, err := range feed {
				if err == nil {
					all <- e
				}
			}
		}()
		return all
	}
	return &watcher{b: b, session: follow(bus.SessionFeed("main:test:1")), channel: follow(bus.ChannelFeed("test")), blocks: map[int]blocks.Block{}, stopped: map[int]bool{}}
}

// untilEnd reads the events up to the end of a turn, by the rules of docs/http.md.
func (w *watcher) untilEnd(turn string) {
	w.b.t.Helper()
	limit := time.After(20 * time.Second)
	for !w.ended {
		select {
		case e := <-w.session:
			if e.Turn == turn {
				w.apply(e)
			}
		case <-limit:
			w.b.t.Fatalf("the turn has not ended: %v", w.course)
		}
	}
}

func (w *watcher) apply(e bus.Event) {
	at := w.blocks[e.Block]
	switch e.Type {
	case bus.BlockStart:
		at = blocks.Block{Number: e.Block, Kind: e.Kind, Tool: e.Tool, Call: e.Call}
		if e.Detail != nil {
			at.Detail = *e.Detail
		}
		w.blocks[e.Block] = at
		delete(w.stopped, e.Block)
	case bus.BlockDelta:
		at.Text += e.Delta
		w.blocks[e.Block] = at
	case bus.BlockStop:
		at.Call = e.Call
		if e.Detail != nil {
			at.Input, at.Failed, at.Reason, at.Metadata, at.Cut = e.Input, e.Failed, e.Reason, e.Metadata, e.Cut
		}
		if e.Kind == string(sessions.KindToolUse) {
			at.Text = ""
		}
		w.blocks[e.Block], w.stopped[e.Block] = at, true
	case bus.BlockReset:
		maps.DeleteFunc(w.blocks, func(n int, _ blocks.Block) bool { return n >= e.Block })
		maps.DeleteFunc(w.stopped, func(n int, _ bool) bool { return n >= e.Block })
	case bus.TurnComplete, bus.TurnError:
		maps.DeleteFunc(w.blocks, func(n int, _ blocks.Block) bool { return !w.stopped[n] })
		w.ended = true
	}
	step := fmt.Sprintf("%s/%d", e.Type, e.Block)
	if e.Kind != "" {
		step += e.Kind
	}
	w.course = append(w.course, step)
}

// wantAsLogged checks that watchers know all that the log has of the turn, and nothing else, and that channels
// were told nothing but what they show. It returns the kinds in their order.
func (w *watcher) wantAsLogged(turn string) string {
	w.b.t.Helper()
	want := map[int]blocks.Block{}
	var numbers blocks.Numbering
	names := map[string]string{}
	for e, err := range w.b.store.Read(w.b.t.Context(), "main:test:1", 1) {
		if err != nil {
			w.b.t.Fatal(err)
		}
		if e.Turn != turn {
			continue
		}
		number, ok := numbers.Add(e.Kind, e.Call)
		if !ok {
			continue
		}
		data, _, err := sessions.DecodeAny(e)
		if err != nil {
			w.b.t.Fatal(err)
		}
		b, _ := blocks.Show(data, w.b.agent.Redact)
		if e.Kind == sessions.KindToolUse {
			names[e.Call] = b.Tool
		}
		b.Number, b.Call, b.Tool, b.Cause = number, e.Call, names[e.Call], e.Cause
		want[number] = b
	}
	if got, log := fmt.Sprintf("%+v", sortedBlocks(w.blocks)), fmt.Sprintf("%+v", sortedBlocks(want)); got != log {
		w.b.t.Errorf("watchers have\n%s\nthe log has\n%s\nit was said\n%s", got, log, strings.Join(w.course, " "))
	}
	for over := false; !over; {
		e := <-w.channel
		over = e.Turn == turn && (e.Type == bus.TurnComplete || e.Type == bus.TurnError)
		if e.Kind == "user" || e.Kind == "tool_result" || e.Kind == "tool_use" && e.Type != bus.BlockStart {
			w.b.t.Errorf("the channel was told %+v", e)
		}
	}
	var kinds []string
	for _, b := range sortedBlocks(want) {
		kinds = append(kinds, b.Kind)
	}
	return strings.Join(kinds, " ")
}

func sortedBlocks(all map[int]blocks.Block) []blocks.Block {
	return slices.SortedFunc(maps.Values(all), func(a, b blocks.Block) int { return a.Number - b.Number })
}

// Whatever happens to a turn, its watchers end with what the log has.
func TestWatchersHaveWhatTheLogHas(t *testing.T) {
	both := []string{`look {"say":"a"}`, `act {"say":"b"}`}
	for name, tc := range map[string]struct {
		m      model
		before func(b *bench) // anybody works
		play   func(b *bench) (turn string)
		want   string
	}{
		"one call waits, and people write meanwhile": {actModel(both...), nil, func(b *bench) string {
			turn := b.say("1", "ann", "go")
			id, _ := b.nextAskID()
			b.settled()
			b.say("1", "bob", "are you there?")
			b.reply()
			b.command("1", owner, "approve "+id)
			return turn
		}, "user tool_use tool_use tool_result tool_result user text"},
		"a call is denied": {actModel(both...), nil, func(b *bench) string {
			turn := b.say("1", "ann", "go")
			id, _ := b.nextAskID()
			b.command("1", owner, "deny "+id)
			return turn
		}, "user tool_use tool_use tool_result tool_result text"},
		"it is stopped while it waits": {actModel(both...), nil, func(b *bench) string {
			turn := b.say("1", "ann", "go")
			b.nextAskID()
			b.settled()
			b.say("1", "ann", "/stop")
			return turn
		}, "user tool_use tool_use tool_result tool_result"},
		"calls that do not exist": {actModel(`none {"say":"a"}`, `act not JSON`), nil, func(b *bench) string {
			return b.say("1", "ann", "go")
		}, "user tool_use tool_use tool_result tool_result text"},
		"it calls although it must not": {func(_ context.Context, r llm.Request) (llm.Answer, error) {
			a := textAnswer("that is all")
			a.Blocks = append(callsAnswer(both[0]).Blocks, a.Blocks...)
			return a, nil
		}, func(b *bench) { b.agent.MaxIterations = 2 }, func(b *bench) string {
			return b.say("1", "ann", "go")
		}, "user tool_use text tool_result text"},
		"it was cut off": {actModel(), func(b *bench) {
			b.writeBegunTurn(b.t.(*testing.T), "m1", sessions.ToolUse{Name: "look", Args: json.RawMessage(`{"say": "x"}`)})
			for _, e := range []bus.Event{ // what the one that was cut off has said
				{Type: bus.BlockStart, Kind: "user", Detail: &bus.Detail{Cause: "m1"}}, {Type: bus.BlockDelta, Kind: "user", Delta: "do it"}, {Type: bus.BlockStop, Kind: "user"},
				{Type: bus.BlockStart, Block: 1, Kind: "tool_use", Tool: "look"}, {Type: bus.BlockDelta, Block: 1, Kind: "tool_use", Delta: `{"sa`},
			} {
				e.Session, e.Turn = "main:test:1", "m1"
				b.bus.Emit(e)
			}
		}, func(b *bench) string {
			return b.say("1", "ann", "do it")
		}, "user tool_use tool_result text"},
	} {
		t.Run(name, func(t *testing.T) {
			b, _, _ := newActBench(t, tc.m, echo("look", tools.Pure, nil))
			b.agent.Redact = secretHider{}
			w := b.watch()
			if tc.before != nil {
				tc.before(b)
			}
			b.run()
			turn := tc.play(b)
			w.untilEnd(turn)
			if got := w.wantAsLogged(turn); got != tc.want {
				t.Errorf("the turn has %s, want %s", got, tc.want)
			}
		})
	}
}

// A message that the same person sends while a call runs becomes a block after the results, including the results of
// skipped calls.
func TestWatchersSeeWhatSteersATurn(t *testing.T) {
	running, goOn := make(chan struct{}), make(chan struct{})
	slow := echo("slow", tools.Once, func(tools.Call, string) error {
		close(running)
		<-goOn
		return nil
	})
	b := newBench(t, actModel(`slow {"say":"a"}`, `slow {"say":"b"}`), slow)
	b.agent.Redact = secretHider{}
	w := b.watch()
	b.run()
	turn := b.say("1", "ann", "go")
	<-running
	b.say("1", "ann", "and this")
	waitWaiting(t, b, 2) // with that which began the turn
	close(goOn)
	w.untilEnd(turn)
	if got, want := w.wantAsLogged(turn), "user tool_use tool_use tool_result tool_result user text"; got != want {
		t.Errorf("the turn has %s, want %s", got, want)
	}
}

// The results of parallel calls are numbered in the order of their calls, whichever comes first.
func TestResultsAreNumberedInTheOrderOfTheirCalls(t *testing.T) {
	first := make(chan struct{})
	look := echo("look", tools.Pure, func(_ tools.Call, say string) error {
		if say == "slow" {
			<-first
		}
		return nil
	})
	b := newBench(t, actModel(`look {"say":"slow"}`, `look {"say":"quick"}`), look)
	b.agent.Redact = secretHider{}
	w := b.watch()
	b.run()
	turn := b.say("1", "ann", "go")
	for e := range w.session {
		if w.apply(e); e.Kind == "tool_result" && e.Type == bus.BlockStop {
			close(first)
			break
		}
	}
	w.untilEnd(turn)
	w.wantAsLogged(turn)
	course := strings.Join(w.course, " ")
	if quick, slow := strings.Index(course, "block_start/4tool_result"), strings.Index(course, "block_start/3tool_result"); quick < 0 || slow < quick || w.blocks[3].Text != `{"said":"slow"}` {
		t.Errorf("it was said %s; block 3 is %+v", course, w.blocks[3])
	}
}

// A message that is deleted is empty for watchers, too.
func TestWatchersSeeThatAMessageIsDeleted(t *testing.T) {
	b := newBench(t, func(context.Context, llm.Request) (llm.Answer, error) { return textAnswer("fine"), nil })
	b.agent.Redact = secretHider{}
	w := b.watch()
	b.run()
	b.publish(messageWithFiles("e1", "what I regret"))
	w.untilEnd("e1")
	b.wantReply("e1", "fine")
	if w.blocks[0].Text != "what I regret" {
		t.Errorf("watchers have %+v", w.blocks[0])
	}
	gone := changeMessage(bus.Deleted, "e2", "e1", "")
	b.publish(gone)
	for e := range w.session {
		if w.apply(e); e.Turn == "e1" && e.Kind == "user" && e.Type == bus.BlockStop {
			break
		}
	}
	if w.blocks[0].Text != "" || w.blocks[0].Cause != "e1" {
		t.Errorf("watchers have %+v", w.blocks[0])
	}
}

// A readCountingStore counts how often logs are read anew.
type readCountingStore struct {
	agent.Store
	reads atomic.Int64
}

func (s *readCountingStore) Read(ctx context.Context, key string, from int64) iter.Seq2[sessions.Entry, error] {
	s.reads.Add(1)
	return s.Store.Read(ctx, key, from)
}

// For a deleted message the log is read once, wherever in its turn watchers have it.
func TestTheLogIsReadOnceForADeletedMessage(t *testing.T) {
	running, goOn := make(chan struct{}), make(chan struct{})
	slow := echo("slow", tools.Once, func(tools.Call, string) error {
		close(running)
		<-goOn
		return nil
	})
	b := newBench(t, actModel(`slow {"say":"a"}`), slow)
	counted := &readCountingStore{Store: b.store}
	b.sessions = counted
	b.agent.Redact = secretHider{}
	w := b.watch()
	b.run()
	turn := b.say("1", "ann", "go")
	<-running
	regretted := b.say("1", "ann", "what I regret")
	waitWaiting(t, b, 2) // with that which began the turn
	close(goOn)
	w.untilEnd(turn)
	b.settled()
	const number = 3 // behind the first message, the call and its result
	if w.blocks[number].Text != "what I regret" {
		t.Fatalf("watchers have %+v", w.blocks)
	}
	counted.reads.Store(0)
	gone := changeMessage(bus.Deleted, "e2", regretted, "")
	gone.From.ID = "" // who has done so is not always told
	b.publish(gone)
	for e := range w.session {
		if w.apply(e); e.Turn == turn && e.Kind == "user" && e.Type == bus.BlockStop {
			break
		}
	}
	if got := w.blocks[number]; got.Text != "" || got.Cause != regretted {
		t.Errorf("watchers have %+v", w.blocks)
	}
	if n := counted.reads.Load(); n != 1 {
		t.Errorf("the log was read %d times", n)
	}
}

// A countingHider counts how often it removes the secrets from texts with a given beginning.
type countingHider struct {
	secretHider
	begins string
	times  *atomic.Int64
}

func (c countingHider) Text(text string) string {
	if strings.HasPrefix(text, c.begins) {
		c.times.Add(1)
	}
	return c.secretHider.Text(text)
}

// The log and watchers have the same text of an answer, and its secrets are removed once.
func TestSecretsAreTakenOutOfAnAnswerOnce(t *testing.T) {
	b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
		if len(toolResults(r)) > 0 {
			return textAnswer("done"), nil
		}
		first := callsAnswer(`look {"say":"a"}`)
		first.Blocks = append([]llm.Block{{Kind: llm.BlockText, Text: "I look for my-secret"}}, first.Blocks...)
		return first, nil
	}, echo("look", tools.Pure, nil))
	var times atomic.Int64
	b.agent.Redact = countingHider{begins: "I look", times: &times}
	w := b.watch()
	b.run()
	turn := b.say("1", "ann", "go")
	w.untilEnd(turn)
	n := times.Load()
	if got, want := w.wantAsLogged(turn), "user text tool_use tool_result text"; got != want || w.blocks[1].Text != "I look for ***" {
		t.Errorf("the turn has %s, and watchers have %+v", got, w.blocks)
	}
	if n != 1 {
		t.Errorf("the text was looked through %d times", n)
	}
}
