package worker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/agent"
	"parley/agent/agenttest"
	"parley/agent/llm"
	"parley/agent/openai"
	"parley/agent/transcript"
	"parley/bus"
	"parley/sessions"
	"parley/tools"
)

const instructions = "Number the 300 files; never touch README.md, and end with the word finished."

// newSmallWindowBench returns a bench whose model has a context window of that many tokens.
func newSmallWindowBench(t *testing.T, s *agenttest.Server, window int, set ...tools.Tool) *bench {
	t.Helper()
	b := newWireBench(t, s, set...)
	m, err := openai.New(openai.Config{BaseURL: s.Start(t), Name: "m", Window: window})
	if err != nil {
		t.Fatal(err)
	}
	b.agent.Model = m
	b.agent.Prompt = func(context.Context, agent.Asker) (string, error) {
		return strings.Repeat("You are a careful clerk who keeps to what people say. ", 80), nil
	}
	b.limit.TokensDay = 100_000_000
	return b
}

// countingScript returns the script of a model that calls a tool as many times as given, and summarizes when asked. Two
// calls may come at once.
func countingScript(calls int, most *atomic.Int64) agenttest.Script {
	call := func(n int64) agenttest.ToolCall {
		return agenttest.ToolCall{ID: fmt.Sprintf("call%05d", n), Name: "echo", Args: fmt.Sprintf(`{"say":"file %d %s"}`, n, strings.Repeat("abcdefg ", 40))}
	}
	return func(q agenttest.Request) agenttest.Response {
		if asksForSummary(q) {
			return agenttest.Reply(fmt.Sprintf("Of the 300 files %d are numbered; README.md is untouched.", most.Load()))
		}
		switch n := most.Load(); {
		case n >= int64(calls):
			return agenttest.Reply("finished")
		case n%10 == 8:
			most.Add(2)
			return agenttest.Calls(call(n), call(n+1))
		default:
			most.Add(1)
			return agenttest.Calls(call(n))
		}
	}
}

// A turn may be many times longer than the window. It goes on with a summary of itself, and
// every request has the person's own words, each call with its result, and mostly the same
// beginning as the one before.
func TestATurnOf300CallsInAWindowOf8000(t *testing.T) {
	const window = 8192
	var made, refused atomic.Int64
	script := agenttest.RequireTools(agenttest.RequireOrder(agenttest.CountTokens(countingScript(300, &made))))
	s := agenttest.New(func(q agenttest.Request) agenttest.Response {
		if agenttest.Tokens(q) > window {
			refused.Add(1)
		}
		return agenttest.Window(window, 400, `{"error":{"message":"maximum context length is {window} tokens","code":"context_length_exceeded"}}`, script)(q)
	})
	var ran atomic.Int64
	b := newSmallWindowBench(t, s, window, echo("echo", tools.Once, func(tools.Call, string) error { ran.Add(1); return nil }))
	b.agent.MaxIterations = 400
	b.run()
	b.wantReply(b.say("1", "ann", instructions), "finished")
	if ran.Load() != 300 || refused.Load() > 0 {
		t.Errorf("%d calls ran, %d requests were too long", ran.Load(), refused.Load())
	}
	var last agenttest.Request
	same, all, broken, asked := 0, 0, 0, 0
	for _, q := range s.Requests() {
		if !bytes.Contains(q.Body, []byte(instructions)) {
			t.Errorf("request %d lacks what the person said", q.N)
		}
		if wrong := orphanCalls(q); wrong != "" {
			t.Errorf("request %d: %s", q.N, wrong)
		}
		if asksForSummary(q) {
			continue
		}
		if asked++; asked > 1 {
			shared, total := sharedPrefix(last, q)
			same, all = same+shared, all+total
			if shared*10 < total*7 {
				broken++
			}
		}
		last = q
	}
	share := float64(same) / float64(all)
	t.Logf("%d requests, %.1f%% of their tokens in the prefix before, %d below 70%%", asked, 100*share, broken)
	if share < 0.7 || broken > asked/10 {
		t.Errorf("%.0f%% of all tokens were in the prefix of the request before; in %d of %d requests it was less than 70%%", 100*share, broken, asked)
	}
	if kinds := b.kinds("1"); !strings.Contains(kinds, "summary") {
		t.Error("nothing was summed up")
	}
	b.wantReply(b.say("1", "ann", "and now?"), "finished") // the next turn reads what is left of this one
	if q := s.Requests(); !bytes.Contains(q[len(q)-1].Body, []byte(instructions)) || !bytes.Contains(q[len(q)-1].Body, []byte("are numbered")) {
		t.Error("the next turn knows nothing of what was said and done")
	}
}

// orphanCalls returns the calls of a request without a result, and the results without a call.
func orphanCalls(q agenttest.Request) string {
	open := map[string]bool{}
	for _, m := range q.Messages() {
		for _, c := range m.Calls {
			open[c.ID] = true
		}
		if m.Role == "tool" && !open[m.CallID] {
			return "a result without its call: " + m.CallID
		}
		delete(open, m.CallID)
	}
	if len(open) > 0 {
		return fmt.Sprintf("%d calls without a result", len(open))
	}
	return ""
}

// sharedPrefix returns how many bytes the prompts of two successive requests have in common from the beginning, and how
// many the second has in total. A prompt is the tools, then the messages.
func sharedPrefix(before, now agenttest.Request) (shared, total int) {
	x, y := promptBytes(before), promptBytes(now)
	for shared < min(len(x), len(y)) && x[shared] == y[shared] {
		shared++
	}
	return shared, len(y)
}

func promptBytes(q agenttest.Request) []byte {
	var body struct {
		Tools    json.RawMessage
		Messages []json.RawMessage
	}
	if q.Decode(&body) != nil {
		return nil
	}
	read := bytes.Clone(body.Tools)
	for _, m := range body.Messages {
		read = append(read, m...)
	}
	return read
}

// A result that a tool shows in its turn only is in no summary: the summary would stay in the log, and people who may
// not read the result would be answered from it.
func TestUnloggedResultsAreInNoSummary(t *testing.T) {
	const others = "the merger is on Monday"
	var made, summaries atomic.Int64
	script := countingScript(40, &made)
	s := agenttest.New(agenttest.RequireTools(agenttest.RequireOrder(agenttest.CountTokens(func(q agenttest.Request) agenttest.Response {
		switch {
		case asksForSummary(q):
			summaries.Add(1)
			if bytes.Contains(q.Body, []byte(others)) || !bytes.Contains(q.Body, []byte("read it again")) && summaries.Load() == 1 {
				t.Errorf("a summary is made of %s", q.Body)
			}
		case !bytes.Contains(q.Body, []byte("peek00")) && made.Load() == 0:
			return agenttest.Calls(agenttest.ToolCall{ID: "peek00", Name: "peek"})
		case made.Load() == 0 && !bytes.Contains(q.Body, []byte(others)):
			t.Errorf("the turn itself is not shown it: %s", q.Body)
		}
		return script(q)
	}))))
	peek := tools.New(tools.Spec{Name: "peek", Description: "reads another chat", Effect: tools.Pure}, func(context.Context, tools.Call, struct{}) (any, error) {
		return tools.Fleeting{Value: others, StoredValue: "[not kept; read it again]"}, nil
	})
	b := newSmallWindowBench(t, s, 6000, peek, echo("echo", tools.Once, nil))
	b.agent.MaxIterations = 100
	b.run()
	b.wantReply(b.say("1", "ann", instructions), "finished")
	if summaries.Load() == 0 {
		t.Error("nothing was summed up")
	}
}

// A provider's window may be smaller than is known. If the provider refuses a request, the turn is summarized and
// continues.
func TestARefusalInMidTurnSumsTheTurnUp(t *testing.T) {
	var made atomic.Int64
	s := agenttest.New(agenttest.Window(5000, 400, `{"error":{"message":"This model's maximum context length is {window} tokens.","code":"context_length_exceeded"}}`,
		agenttest.RequireTools(agenttest.RequireOrder(agenttest.CountTokens(countingScript(60, &made))))))
	b := newSmallWindowBench(t, s, 0, echo("echo", tools.Once, nil))
	b.agent.MaxIterations = 100
	var counted compactionCounter
	b.observer = &counted
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	feed, err := b.bus.Subscribe(ctx, bus.SessionFeed("main:test:1"), 0)
	if err != nil {
		t.Fatal(err)
	}
	b.run()
	id := b.say("1", "ann", instructions)
	var told atomic.Int64
	for e, err := range feed {
		if err != nil {
			t.Fatal(err)
		}
		if c := e.Compaction; e.Type == bus.Compacted && c != nil && c.After > 0 && c.After < c.Before && e.Turn == id {
			told.Add(1)
		}
		if e.Type == bus.TurnComplete || e.Type == bus.TurnError {
			break
		}
	}
	b.wantReply(id, "finished")
	if !strings.Contains(b.kinds("1"), string(sessions.KindSummary)) {
		t.Error("nothing was summed up")
	}
	if told.Load() == 0 || counted.count("summarised")+counted.count("cleared") < told.Load() {
		t.Errorf("watchers were told %d times, counted were %d and %d", told.Load(), counted.count("summarised"), counted.count("cleared"))
	}
}

// A compactionCounter counts the results of making requests shorter.
type compactionCounter struct {
	lossCounter
	mu      sync.Mutex
	results map[string]int64
}

func (c *compactionCounter) Compaction(result string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.results == nil {
		c.results = map[string]int64{}
	}
	c.results[result]++
}

func (c *compactionCounter) count(result string) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.results[result]
}

// People can have the conversation summarized, and are told how much of the window it fills.
func TestPeopleSumUpTheConversation(t *testing.T) {
	s := agenttest.New(agenttest.RequireOrder(agenttest.CountTokens(func(q agenttest.Request) agenttest.Response {
		if asksForSummary(q) {
			return agenttest.Reply("They told me of a pear.")
		}
		return agenttest.Reply("fine")
	})))
	b := newSmallWindowBench(t, s, 8192)
	b.run()
	b.wantReply(b.say("1", "ann", "/compact"), "much to sum up")
	for n := range 4 {
		b.wantReply(b.say("1", "ann", fmt.Sprintf("pear %d %s", n, strings.Repeat("word ", 300))), "fine")
	}
	b.wantReply(b.say("1", "ann", "/context"), "of the 6,144 tokens that I can use")
	b.wantReply(b.say("1", "ann", "/context"), "m can read 8,192 tokens, according to the configuration")
	b.wantReply(b.say("1", "ann", "/compact"), "I've summed up the conversation so far")
	b.wantReply(b.say("1", "ann", "what was it?"), "fine")
	asked := s.Requests()
	last := asked[len(asked)-1].Body
	if !bytes.Contains(last, []byte("They told me of a pear.")) || bytes.Contains(last, []byte("pear 0")) || !bytes.Contains(last, []byte("what was it?")) {
		t.Errorf("the model is asked %s", last)
	}
}

// If the model can't be asked for a summary, the person is told. Nothing is lost, and the command can be repeated.
func TestPeopleHearThatNothingWasSummedUp(t *testing.T) {
	var away atomic.Bool
	s := agenttest.New(func(q agenttest.Request) agenttest.Response {
		switch {
		case asksForSummary(q) && away.Load():
			return agenttest.Fail(401, `{"error":{"message":"no such key"}}`)
		case asksForSummary(q):
			return agenttest.Reply("They told me of a pear.")
		}
		return agenttest.Reply("fine")
	})
	b := newSmallWindowBench(t, s, 8192)
	b.run()
	for n := range 4 {
		b.wantReply(b.say("1", "ann", fmt.Sprintf("pear %d %s", n, strings.Repeat("word ", 300))), "fine")
	}
	away.Store(true)
	b.wantReply(b.say("1", "ann", "/compact"), "provider is refusing my requests (status 401)")
	away.Store(false)
	b.wantReply(b.say("1", "ann", "/compact"), "I've summed up the conversation so far")
}

// A summary that saves nothing is not tried forever: after two of them the turn is given up, the person is told, and no
// more calls are paid for.
func TestSummariesThatSaveNothingEnd(t *testing.T) {
	var made atomic.Int64
	script := countingScript(300, &made)
	var summaries atomic.Int64
	s := agenttest.New(agenttest.Window(4000, 400, `{"error":{"message":"Token limit reached","code":400}}`, agenttest.CountTokens(func(q agenttest.Request) agenttest.Response {
		if asksForSummary(q) {
			summaries.Add(1)
			return agenttest.Reply(strings.Repeat("I cannot be brief. ", 600))
		}
		return script(q)
	})))
	b := newSmallWindowBench(t, s, 0, echo("echo", tools.Once, nil))
	b.agent.MaxIterations = 400
	b.run()
	b.say("1", "ann", instructions)
	out := b.reply()
	if !out.Failed || !strings.Contains(out.Text, "now too long for the model to read") || !strings.Contains(out.Text, "/new") {
		t.Errorf("reply %+v", out)
	}
	if n := summaries.Load(); n == 0 || n > 16 {
		t.Errorf("%d summaries were asked for", n)
	}
}

// While a process of an older release serves, no part of a turn is summarized: that process would take the turn for
// another conversation's.
func TestBesideAnOlderReleaseNoTurnIsSummedUp(t *testing.T) {
	var made atomic.Int64
	s := agenttest.New(agenttest.RequireTools(agenttest.RequireOrder(agenttest.CountTokens(countingScript(40, &made)))))
	b := newSmallWindowBench(t, s, 6000, echo("echo", tools.Once, nil))
	b.agent.MaySummarizeTurn = func(context.Context) (bool, error) { return false, nil }
	b.agent.MaxIterations = 100
	b.run()
	b.say("1", "ann", "hello")
	if out := b.reply(); out.Text != "finished" && !strings.Contains(out.Text, "now too long for the model to read") {
		t.Errorf("reply %+v", out)
	}
	b.settled()
	for e, err := range b.store.Read(t.Context(), "main:test:1", 1) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind != sessions.KindSummary {
			continue
		}
		if d, err := sessions.Decode[sessions.Summary](e); err != nil || d.Turn != "" || d.Covers > 0 {
			t.Errorf("a summary %+v, %v", d, err)
		}
	}
}

// A turn that was summarized in part and then waits for people still belongs to this conversation: messages meanwhile
// join it, and it continues with the summary.
func TestATurnThatWasSummedUpWaitsForPeople(t *testing.T) {
	var step atomic.Int64
	var last atomic.Pointer[llm.Request]
	b, _, ran := newActBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
		if strings.Contains(newestUserText(r), "Summarize the conversation") {
			return textAnswer("SUMMARY of it"), nil
		}
		last.Store(&r)
		switch n := step.Add(1); {
		case n <= 15:
			return callsAnswer(fmt.Sprintf(`echo {"say":"%d %s"}`, n, strings.Repeat("x", 400))), nil
		case n == 16:
			return callsAnswer(`act {"say":"now"}`), nil
		}
		return textAnswer("finished"), nil
	}, echo("echo", tools.Once, nil))
	b.agent.ContextTokens, b.agent.MaxIterations = 2000, 40
	b.run()
	id := b.say("1", "ann", instructions)
	ask, _ := b.nextAskID()
	if kinds := b.kinds("1"); !strings.Contains(kinds, "summary") {
		t.Fatalf("nothing was summed up: %s", kinds)
	}
	b.wantReply(b.say("1", "ann", "and hurry"), "approval")
	b.command("1", owner, "approve "+ask)
	b.wantEnd(ask, "Approved")
	b.wantReply(id, "finished")
	if said := allText(*last.Load()); ran.Load() != 1 || !strings.Contains(said, instructions) || !strings.Contains(said, "SUMMARY of it") || !strings.Contains(said, "and hurry") {
		t.Errorf("ran %d times; the turn went on with %s", ran.Load(), said)
	}
}

// If the model fails to give a summary, it is asked once in a step, and the turn continues without one.
func TestASummaryThatFailsIsAskedForOnce(t *testing.T) {
	var summaries, asked atomic.Int64
	s := agenttest.New(func(q agenttest.Request) agenttest.Response {
		if asksForSummary(q) {
			summaries.Add(1)
			return agenttest.Fail(http.StatusBadRequest, `{"error":{"message":"no","type":"invalid_request_error"}}`)
		}
		asked.Add(1)
		return agenttest.Reply("fine")
	})
	b := newSmallWindowBench(t, s, 8192)
	b.run()
	for n := 0; summaries.Load() == 0 && n < 40; n++ {
		b.wantReply(b.say("1", "ann", fmt.Sprintf("pear %d %s", n, strings.Repeat("word ", 300))), "fine")
	}
	b.settled()
	if n := summaries.Load(); n != 1 {
		t.Errorf("%d summaries were asked for, and %d answers", n, asked.Load())
	}
}

// A call's reservation is counted as the provider counts: here each text has five times as many tokens as its length
// suggests.
func TestABudgetCountsAsTheProviderDoes(t *testing.T) {
	b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
		a := textAnswer("fine")
		a.Usage = llm.Usage{Input: int64(5 * transcript.Estimate(&r)), Output: 10}
		return a, nil
	})
	b.limit.TokensDay, b.limit.TokensAlways = 24_000, true
	b.run()
	b.wantReply(b.say("1", "ann", strings.Repeat("word ", 1600)), "fine") // 2,000 by its length, 10,000 as counted
	b.wantReply(b.say("1", "ann", "and now?"), "24,000 tokens")           // 14,000 are left for more than 14,000
}
