package failover_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent/agenttest"
	"parley/agent/failover"
	"parley/agent/llm"
	"parley/agent/openai"
	"parley/agent/prices"
)

// busyResponse is the response of an overloaded provider that asks for a very short wait.
var busyResponse = agenttest.Fail(http.StatusServiceUnavailable, `{"error":{"message":"overloaded"}}`, "retry-after-ms", "1")

// newServedLink returns a link to a model on a server that plays a script.
func newServedLink(t *testing.T, name string, script agenttest.Script) (failover.Link, *agenttest.Server) {
	t.Helper()
	s := agenttest.New(script)
	m, err := openai.New(openai.Config{Name: name, BaseURL: s.Start(t)})
	if err != nil {
		t.Fatal(err)
	}
	return failover.Link{ID: name, Model: m}, s
}

// A watchedRequest is what a watcher of one request has seen.
type watchedRequest struct {
	text    string
	retries []llm.Retry
}

// askChain asks as a turn does, and returns what its watchers see.
func askChain(t *testing.T, c *failover.Chain, session string) (*llm.Answer, watchedRequest, error) {
	t.Helper()
	var h watchedRequest
	r := &llm.Request{Session: session, Messages: []llm.Message{{Role: llm.RoleUser, Blocks: []llm.Block{{Kind: llm.BlockText, Text: "hello"}}}}}
	r.Retry = func(_ context.Context, again llm.Retry) error {
		h.text = ""
		h.retries = append(h.retries, again)
		return nil
	}
	answer, err := c.Generate(t.Context(), r, func(d llm.Delta) { h.text += d.Text })
	return answer, h, err
}

func textOf(a *llm.Answer) string {
	var text strings.Builder
	for _, b := range a.Blocks {
		text.WriteString(b.Text)
	}
	return text.String()
}

// wantFault returns the fault that a request must have ended with.
func wantFault(t *testing.T, err error) *llm.Error {
	t.Helper()
	f, ok := err.(*llm.Error) //nolint:errorlint // what Generate returns is not wrapped
	if !ok {
		t.Fatalf("got the error %v, want an *llm.Error", err)
	}
	return f
}

// A model that gives no answer is asked again while that may help, and then the next one is asked. From then on the
// first has a cooldown.
func TestTheNextModelAnswers(t *testing.T) {
	for what, c := range map[string]struct {
		first agenttest.Script
		tries int // of the first model
		alone bool
	}{
		"one that is overloaded":         {agenttest.Always(busyResponse), 3, true},
		"one that wants a long patience": {agenttest.Always(agenttest.Fail(429, `{"error":{"message":"slow down"}}`, "Retry-After", "600")), 1, true},
		"one that refuses the key":       {agenttest.Always(agenttest.Fail(401, `{"error":{"message":"bad key"}}`)), 1, true},
		"one whose account is empty":     {agenttest.Always(agenttest.Fail(429, `{"error":{"code":"insufficient_quota","message":"no credit"}}`)), 1, true},
		"one that rejects this request":  {agenttest.Always(agenttest.Fail(400, `{"error":{"message":"nonsense"}}`)), 1, false},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			one, first := newServedLink(t, "one", c.first)
			two, second := newServedLink(t, "two", agenttest.Always(agenttest.Reply("from two")))
			var moved []string
			chain := failover.New(failover.Config{Links: []failover.Link{one, two}, OnFailover: func(from, to string) { moved = append(moved, from+" → "+to) }})
			answer, h, err := askChain(t, chain, "s1")
			if err != nil {
				t.Fatal(err)
			}
			if textOf(answer) != "from two" || answer.Model != "two" || h.text != "from two" {
				t.Errorf("%s answered %q, and watchers saw %q", answer.Model, textOf(answer), h.text)
			}
			if first.Asked() != c.tries || second.Asked() != 1 {
				t.Errorf("the first was asked %d times and the second %d times, want %d and 1", first.Asked(), second.Asked(), c.tries)
			}
			if !slices.Equal(moved, []string{"one → two"}) {
				t.Errorf("moved: %v", moved)
			}
			if n := len(h.retries); n != c.tries || h.retries[n-1].From != "one" || h.retries[n-1].To != "two" || h.retries[n-1].Try != c.tries+1 {
				t.Errorf("retries: %+v", h.retries)
			}
			if _, _, err := askChain(t, chain, "s2"); err != nil {
				t.Fatal(err)
			}
			if again := first.Asked() > c.tries; again == c.alone {
				t.Errorf("the first was asked by the next request: %v", again)
			}
		})
	}
}

// A stream that is cut off, or stalls, is repeated completely: nobody gets half a block, or a block twice.
func TestAnAnswerThatIsCutIsAskedForAgain(t *testing.T) {
	whole := agenttest.Reply("one whole answer")
	for what, cut := range map[string]agenttest.Response{
		"a connection that is reset": whole.CutAfter(whole.Len() / 2).Reset(),
		"a clean end":                whole.CutAfter(whole.Len() / 2),
		"silence":                    whole.CutAfter(whole.Len() / 2).Stall(),
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := agenttest.New(agenttest.Sequence(cut, whole))
			m, err := openai.New(openai.Config{Name: "m", BaseURL: s.Start(t), Idle: 300 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			answer, h, err := askChain(t, failover.New(failover.Config{Links: []failover.Link{{Model: m}}}), "s")
			if err != nil {
				t.Fatal(err)
			}
			if textOf(answer) != "one whole answer" || h.text != "one whole answer" || len(h.retries) != 1 {
				t.Errorf("got %q, watchers saw %q after %d retries", textOf(answer), h.text, len(h.retries))
			}
		})
	}
}

// If a request is too long, the caller has to shorten it: trying again doesn't help.
func TestARequestThatIsTooLongIsNotRepeated(t *testing.T) {
	one, first := newServedLink(t, "one", agenttest.Always(agenttest.Fail(400, `{"error":{"code":"context_length_exceeded","message":"maximum context length is 8192 tokens"}}`)))
	two, second := newServedLink(t, "two", agenttest.Always(agenttest.Reply("from two")))
	_, _, err := askChain(t, failover.New(failover.Config{Links: []failover.Link{one, two}}), "s")
	if f := wantFault(t, err); f.Fault != llm.Overflow || f.Window != 8192 {
		t.Errorf("got %v", f)
	}
	if first.Asked() != 1 || second.Asked() != 0 {
		t.Errorf("asked %d and %d times", first.Asked(), second.Asked())
	}
}

// If all models are away, the person is told, and the next message is still tried.
func TestAllModelsAreAway(t *testing.T) {
	one, first := newServedLink(t, "one", agenttest.Always(agenttest.Fail(401, `{"error":{"message":"bad key"}}`)))
	two, second := newServedLink(t, "two", agenttest.Always(busyResponse))
	chain := failover.New(failover.Config{Links: []failover.Link{one, two}})
	_, _, err := askChain(t, chain, "s")
	if f := wantFault(t, err); f.Fault != llm.Busy || f.Tries != 4 {
		t.Errorf("got %v after %d tries, want what may work later, after 4", f, f.Tries)
	}
	if _, _, err := askChain(t, chain, "s"); err == nil {
		t.Error("somebody answered")
	}
	if first.Asked()+second.Asked() <= 4 {
		t.Error("nobody was asked for the next message")
	}
}

// The caller is told once about answers that cost money and are not used.
func TestVoidAnswersAreCounted(t *testing.T) {
	part := agenttest.Stream(`{"choices":[{"delta":{"content":"half"}}]}`, `{"choices":[{"delta":{},"finish_reason":"network_error"}],"usage":{"prompt_tokens":10,"completion_tokens":5}}`)
	one, _ := newServedLink(t, "one", agenttest.Always(part))
	var paid int64
	r := &llm.Request{
		Messages: []llm.Message{{Role: llm.RoleUser, Blocks: []llm.Block{{Kind: llm.BlockText, Text: "hello"}}}},
		Retry: func(_ context.Context, again llm.Retry) error {
			if again.Void != nil {
				paid += again.Void.Usage.Input + again.Void.Usage.Output
			}
			return nil
		},
	}
	answer, err := failover.New(failover.Config{Links: []failover.Link{one}}).Generate(t.Context(), r, func(llm.Delta) {})
	if err != nil {
		t.Fatal(err)
	}
	if answer.Stop != llm.StopBroken || textOf(answer) != "half" {
		t.Errorf("got %q (%s), want what there is of the answer, said to be that", textOf(answer), answer.Stop)
	}
	if total := paid + answer.Usage.Input + answer.Usage.Output; total != 3*15 {
		t.Errorf("%d tokens are counted for three answers of 15", total)
	}
}

// A script is a model that fails while down is true.
type script struct {
	name   string
	down   atomic.Bool
	asked  atomic.Int32
	fault  llm.Error
	takes  time.Duration
	window int
}

func (s *script) Info() llm.Info { return llm.Info{Name: s.name, ContextTokens: s.window} }

func (s *script) Generate(ctx context.Context, _ *llm.Request, _ func(llm.Delta)) (*llm.Answer, error) {
	s.asked.Add(1)
	time.Sleep(s.takes)
	if s.down.Load() {
		fault := s.fault
		return nil, &fault
	}
	return &llm.Answer{Blocks: []llm.Block{{Kind: llm.BlockText, Text: s.name}}}, ctx.Err()
}

// newPair returns a chain of two models, of which the first is down.
func newPair() (one *script, chain *failover.Chain) {
	one = &script{name: "one", fault: llm.Error{Fault: llm.Busy, RetryAfter: time.Hour}}
	one.down.Store(true)
	return one, failover.New(failover.Config{Links: []failover.Link{{ID: "one", Model: one}, {ID: "two", Model: &script{name: "two"}}}})
}

// answeringModel returns which model answers a request.
func answeringModel(t *testing.T, c *failover.Chain, session string) string {
	t.Helper()
	answer, _, err := askChain(t, c, session)
	if err != nil {
		t.Fatal(err)
	}
	return answer.Model
}

// The cooldown of a failing model gets longer each time, and when it is over, one request at a time probes the model.
func TestAModelIsLeftAloneLongerEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, chain := newPair()
		one.fault.RetryAfter = 0
		n := 0
		for _, length := range []time.Duration{1, 5, 25, 60, 60} {
			n++
			before := one.asked.Load()
			answeringModel(t, chain, fmt.Sprint("s", n))
			if want := before + 1; n > 1 && one.asked.Load() != want {
				t.Fatalf("after the wait of number %d it was asked %d times, want once: it is tried out", n-1, one.asked.Load()-before)
			}
			before = one.asked.Load()
			time.Sleep(length*time.Minute - time.Second)
			answeringModel(t, chain, fmt.Sprint("s", n))
			if one.asked.Load() != before {
				t.Fatalf("it was asked within %d minutes", length)
			}
			time.Sleep(2 * time.Second)
		}
		one.down.Store(false)
		one.takes = time.Minute
		before := one.asked.Load()
		who := make(chan string, 10)
		for i := range 10 {
			go func() { who <- answeringModel(t, chain, fmt.Sprint("new", i)) }()
		}
		names := map[string]int{}
		for range 10 {
			names[<-who]++
		}
		if tried := one.asked.Load() - before; tried != 1 || names["one"] != 1 || names["two"] != 9 {
			t.Errorf("ten requests at once tried it %d times: %v", tried, names)
		}
		if who := answeringModel(t, chain, "later"); who != "one" {
			t.Errorf("%s answers, though the first has", who)
		}
	})
}

// The length of a cooldown depends on the kind of failure.
func TestHowLongAModelIsLeftAlone(t *testing.T) {
	for what, c := range map[string]struct {
		fault         llm.Error
		first, second time.Duration
	}{
		"busy":             {llm.Error{Fault: llm.Busy}, time.Minute, 5 * time.Minute},
		"as long as asked": {llm.Error{Fault: llm.Busy, RetryAfter: 7 * time.Minute}, 7 * time.Minute, 7 * time.Minute},
		"a refused key":    {llm.Error{Fault: llm.Refused, Cause: llm.CauseKey}, 5 * time.Minute, time.Hour},
		"an empty account": {llm.Error{Fault: llm.Refused, Cause: llm.CauseQuota}, 5 * time.Hour, 24 * time.Hour},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				one, chain := newPair()
				one.fault = c.fault
				answeringModel(t, chain, "first")
				for i, length := range []time.Duration{c.first, c.second} {
					before := one.asked.Load()
					time.Sleep(length - 10*time.Second)
					answeringModel(t, chain, fmt.Sprint("within", i))
					if one.asked.Load() != before {
						t.Errorf("it was asked again within %v", length)
					}
					time.Sleep(11 * time.Second)
					answeringModel(t, chain, fmt.Sprint("after", i))
					if one.asked.Load() == before {
						t.Errorf("it was not asked again after %v", length)
					}
				}
			})
		})
	}
}

// A session stays with the model that has answered it, as long as the provider may have the conversation in its cache.
func TestASessionStaysWithItsModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, chain := newPair()
		one.fault.RetryAfter = 2 * time.Minute
		if who := answeringModel(t, chain, "s"); who != "two" {
			t.Fatalf("%s answered", who)
		}
		one.down.Store(false)
		time.Sleep(5 * time.Minute)
		if who := answeringModel(t, chain, "another"); who != "one" {
			t.Errorf("%s answers another session", who)
		}
		if who := answeringModel(t, chain, "s"); who != "two" {
			t.Errorf("%s answers the session of the second", who)
		}
		time.Sleep(11 * time.Minute)
		if who := answeringModel(t, chain, "s"); who != "one" {
			t.Errorf("%s answers after the pause", who)
		}
	})
}

// A chain's price is that of its most expensive model, if all prices are known.
func TestAChainHasTheHighestPrice(t *testing.T) {
	priced := func(name string, price llm.Price) failover.Link {
		l, _ := newServedLink(t, name, agenttest.Always(busyResponse))
		return failover.Link{ID: name, Model: prices.Model{Model: l.Model, Price: price}}
	}
	one, two := priced("one", llm.Price{Input: 1, Cached: 1, Output: 9}), priced("two", llm.Price{Input: 3, Output: 2})
	info := failover.New(failover.Config{Links: []failover.Link{one, two}}).Info()
	if want := (llm.Price{Input: 3, Cached: 1, Output: 9}); !info.Priced || info.Price != want || info.Name != "one" {
		t.Errorf("got %+v, want %+v", info, want)
	}
	free, _ := newServedLink(t, "free", agenttest.Always(busyResponse))
	if info := failover.New(failover.Config{Links: []failover.Link{one, free}}).Info(); info.Priced {
		t.Errorf("with a model of no known price: %+v", info)
	}
}

// If the next model of a chain has a smaller window than the first, it is not asked with a longer request: the caller
// is told the size.
func TestTheNextModelIsNotAskedForMoreThanItReads(t *testing.T) {
	one, _ := newServedLink(t, "one", agenttest.Always(busyResponse))
	s := agenttest.New(agenttest.Always(agenttest.Reply("from two")))
	m, err := openai.New(openai.Config{Name: "two", BaseURL: s.Start(t), Window: 8192})
	if err != nil {
		t.Fatal(err)
	}
	chain := failover.New(failover.Config{Links: []failover.Link{one, {ID: "two", Model: m}}})
	r := &llm.Request{Tokens: 20_000, Messages: []llm.Message{{Role: llm.RoleUser, Blocks: []llm.Block{{Kind: llm.BlockText, Text: "hello"}}}}}
	_, err = chain.Generate(t.Context(), r, func(llm.Delta) {})
	if f := wantFault(t, err); f.Fault != llm.Overflow || f.Window != 8192 || s.Asked() != 0 {
		t.Errorf("fault %s of a window of %d; it was asked %d times", f.Fault, f.Window, s.Asked())
	}
	r.Tokens = 8000
	if answer, err := chain.Generate(t.Context(), r, func(llm.Delta) {}); err != nil || textOf(answer) != "from two" {
		t.Errorf("with less it says %q, %v", textOf(answer), err)
	}
}

// If all models have a cooldown, one of them may work again: each is asked, beginning with the one whose cooldown ends
// first.
func TestAllModelsInCooldownAreAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links := make([]failover.Link, 3)
		all := make([]*script, 3)
		for i, wait := range []time.Duration{3 * time.Hour, 2 * time.Hour, 4 * time.Hour} {
			all[i] = &script{name: fmt.Sprint(i), fault: llm.Error{Fault: llm.Busy, RetryAfter: wait}}
			all[i].down.Store(true)
			links[i] = failover.Link{ID: all[i].name, Model: all[i]}
		}
		var moved []string
		chain := failover.New(failover.Config{Links: links, OnFailover: func(from, to string) { moved = append(moved, from+to) }})
		if _, _, err := askChain(t, chain, "s"); err == nil {
			t.Fatal("somebody answered")
		}
		moved = nil
		all[2].down.Store(false)
		if who := answeringModel(t, chain, "s"); who != "2" || !slices.Equal(moved, []string{"10", "02"}) {
			t.Errorf("%s answered after the moves %v", who, moved)
		}
		if who := answeringModel(t, chain, "t"); who != "2" {
			t.Errorf("then %s answered", who)
		}
	})
}

// The received part of an answer that was broken off is counted: by its server's usage, or else by an estimate of the
// streamed text. If nothing arrived, nothing is counted.
func TestBrokenOffTriesAreCounted(t *testing.T) {
	const usage = `{"choices":[],"usage":{"prompt_tokens":900,"completion_tokens":100}}`
	const half = `{"choices":[{"delta":{"content":"half an answer, or so"}}]}`
	whole := agenttest.Stream(half, `{"choices":[{"delta":{},"finish_reason":"stop"}]}`, usage, "[DONE]")
	counted := agenttest.Stream(half, usage)
	failed := agenttest.Stream(half, `{"error":{"message":"overloaded"},"usage":{"prompt_tokens":900,"completion_tokens":100}}`)
	for what, c := range map[string]struct {
		script      agenttest.Script
		least, most int64 // tokens in all
		estimated   int   // tries
	}{
		"with their usage":            {agenttest.Sequence(counted, failed, whole), 3000, 3000, 0},
		"without usage":               {agenttest.Sequence(agenttest.Stream(half), agenttest.Stream(half), whole), 1010, 1500, 2},
		"before anything had come":    {agenttest.Sequence(agenttest.Stream(), busyResponse, whole), 1000, 1000, 0},
		"with nothing but their ends": {agenttest.Sequence(counted, counted, failed), 3000, 3000, 0},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			one, _ := newServedLink(t, "one", c.script)
			var tokens, observed int64
			estimated := 0
			count := func(a *llm.Answer) {
				if a == nil {
					return
				}
				tokens += a.Usage.Input + a.Usage.Output
				if a.Usage.Estimated {
					estimated++
				}
				if a.Model != "one" {
					t.Errorf("%q is said to have answered", a.Model)
				}
			}
			chain := failover.New(failover.Config{Links: []failover.Link{one}, OnTry: func(try failover.Try) { observed += try.Usage.Input + try.Usage.Output }})
			answer, h, err := askChain(t, chain, "s")
			for _, again := range h.retries {
				count(again.Void)
			}
			if count(answer); err != nil {
				count(wantFault(t, err).Void)
			}
			if tokens < c.least || tokens > c.most || estimated != c.estimated || observed != tokens {
				t.Errorf("%d tokens are counted and %d observed, and %d tries are estimated", tokens, observed, estimated)
			}
		})
	}
}

// A partial answer that is used in the end does not hide the cost of a later try.
func TestATryAfterAPartialAnswerIsCounted(t *testing.T) {
	part := agenttest.Stream(`{"choices":[{"delta":{"content":"half"}}]}`, `{"choices":[{"delta":{},"finish_reason":"network_error"}],"usage":{"prompt_tokens":10,"completion_tokens":5}}`)
	cut := agenttest.Stream(`{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5}}`)
	one, _ := newServedLink(t, "one", agenttest.Sequence(part, cut, cut))
	answer, h, err := askChain(t, failover.New(failover.Config{Links: []failover.Link{one}}), "s")
	if err != nil {
		t.Fatal(err)
	}
	paid := answer.Usage.Input + answer.Usage.Output
	for _, again := range h.retries {
		if again.Void != nil {
			paid += again.Void.Usage.Input + again.Void.Usage.Output
		}
	}
	if textOf(answer) != "half" || paid != 3*15 {
		t.Errorf("%q is shown, and %d tokens are counted for three answers of 15", textOf(answer), paid)
	}
}

// If several models ask for a wait, the caller is told the shortest.
func TestTheShortestTimeIsTold(t *testing.T) {
	at := func(name, after string) failover.Link {
		l, _ := newServedLink(t, name, agenttest.Always(agenttest.Fail(429, `{"error":{"message":"slow down"}}`, "Retry-After", after)))
		return l
	}
	key, _ := newServedLink(t, "key", agenttest.Always(agenttest.Fail(401, `{"error":{"message":"bad key"}}`)))
	_, _, err := askChain(t, failover.New(failover.Config{Links: []failover.Link{key, at("one", "3600"), at("two", "600"), at("three", "900")}}), "s")
	if f := wantFault(t, err); f.Fault != llm.Busy || f.RetryAfter != 10*time.Minute {
		t.Errorf("%s, after %v", f.Fault, f.RetryAfter)
	}
}

// A model with too small a window doesn't keep the others from being asked.
func TestAModelAfterOneThatReadsLessIsAsked(t *testing.T) {
	one, _ := newServedLink(t, "one", agenttest.Always(busyResponse))
	three, third := newServedLink(t, "three", agenttest.Sequence(agenttest.Reply("from three"), busyResponse))
	two := &script{name: "two", window: 8192}
	chain := failover.New(failover.Config{Links: []failover.Link{one, {ID: "two", Model: two}, three}})
	r := &llm.Request{Tokens: 20_000, Messages: []llm.Message{{Role: llm.RoleUser, Blocks: []llm.Block{{Kind: llm.BlockText, Text: "hello"}}}}}
	answer, err := chain.Generate(t.Context(), r, func(llm.Delta) {})
	if err != nil || textOf(answer) != "from three" || two.asked.Load() != 0 {
		t.Fatalf("%v, and the second was asked %d times", err, two.asked.Load())
	}
	_, err = chain.Generate(t.Context(), r, func(llm.Delta) {})
	if f := wantFault(t, err); f.Fault != llm.Overflow || f.Window != 8192 || third.Asked() != 4 {
		t.Errorf("with the third away, asked %d times: %v", third.Asked(), f)
	}
}
