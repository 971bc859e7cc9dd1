package worker_test

import (
	"context"
	"strings"
	"testing"

	"parley/agent"
	"parley/agent/llm"
	"parley/agent/transcript"
	"parley/bus"
	"parley/sessions"
	"parley/tools"
)

// episodesOf returns the episodes in a session's log; nil for an emptied one.
func episodesOf(t testing.TB, store agent.Store, key string) (all []*sessions.Episode) {
	t.Helper()
	for e, err := range store.Read(t.Context(), key, 1) {
		if err != nil {
			t.Fatal(err)
		}
		if n, err := sessions.Decode[sessions.Notice](e); err == nil && e.IsEpisode() {
			all = append(all, n.Episode)
		}
	}
	return all
}

// requestText returns all that a request tells the model.
func requestText(r llm.Request) string {
	var all []string
	for _, m := range r.Messages {
		for _, b := range m.Blocks {
			all = append(all, b.Text)
		}
	}
	return strings.Join(all, "\n")
}

// lookTool is a tool that looks at a path.
func lookTool(at func(ctx context.Context) (any, error)) tools.Tool {
	return tools.New(tools.Spec{Name: "look", Description: "x", Effect: tools.Once}, func(ctx context.Context, _ tools.Call, _ struct {
		Path string `json:"path"`
	},
	) (any, error) {
		return at(ctx)
	})
}

// obedientModel returns a model that makes the call that the user asks for, and stores its newest request's text in
// shown.
func obedientModel(shown *string) model {
	return func(_ context.Context, r llm.Request) (llm.Answer, error) {
		*shown = requestText(r)
		said := newestUserText(r)
		if call, is := strings.CutPrefix(said, "do "); is && r.Messages[len(r.Messages)-1].Blocks[0].Kind != llm.BlockToolResult {
			return callsAnswer(call), nil
		}
		return textAnswer("answered"), nil
	}
}

// A new conversation knows the episodes of earlier ones, in each process. Turns that only answered, and other
// conversations, have none.
func TestANewConversationKnowsWhatWasDone(t *testing.T) {
	var shown string
	b := newBench(t, obedientModel(&shown), lookTool(func(context.Context) (any, error) { return "seen", nil }))
	stop := b.run()
	b.wantReply(b.say("1", "ann", `do look {"path":"plans/first.md"}`), "answered")
	b.wantReply(b.say("1", "ann", "just talk"), "answered")
	b.wantReply(b.say("2", "bob", `do look {"path":"elsewhere"}`), "answered")
	b.wantReply(b.say("1", "ann", "/new"), "new conversation")
	b.wantReply(b.say("1", "ann", "what did you do?"), "answered")
	const first = `did="look plans/first.md" found="answered"`
	if strings.Count(shown, "<lately") != 1 || strings.Count(shown, first) != 1 || strings.Contains(shown, "just talk") || strings.Contains(shown, "elsewhere") || strings.Count(shown, "\n- ") != 1 {
		t.Errorf("after /new the model is shown\n%s", shown)
	}
	stop()
	b.run() // with nothing in memory
	b.wantReply(b.say("1", "ann", `do look {"path":"second.md"}`), "answered")
	if strings.Count(shown, first) != 1 || strings.Contains(shown, `did="look second.md"`) {
		t.Errorf("another process shows\n%s", shown)
	}
	b.wantReply(b.say("1", "ann", "/new"), "new conversation")
	b.wantReply(b.say("1", "ann", "and now?"), "answered")
	if !strings.Contains(shown, first+"\n- ") || !strings.Contains(shown, `did="look second.md" found="answered"`) {
		t.Errorf("after another /new the model is shown\n%s", shown)
	}
	b.settled()
	if got := episodesOf(t, b.store, "main:test:1"); len(got) != 2 || got[0].Entry != 2 || !strings.HasPrefix(got[0].Question, "do look") {
		t.Errorf("the log has %+v", got)
	}
}

// An episode keeps the mark that strangers wrote some of its turn's text, and is not shown to the next conversation.
func TestAnEpisodeKeepsTheMarkOfStrangers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		read   func(a *agent.Agent)
		result any
		marked bool
	}{
		"nothing of strangers": {func(*agent.Agent) {}, "mine", false},
		"a page":               {func(*agent.Agent) {}, tools.Untrusted{Value: "xyzzy"}, true},
		"a file":               {func(a *agent.Agent) { a.Untrusted = func(context.Context, string) bool { return true } }, "mine", true},
		"a memory": {func(a *agent.Agent) {
			a.Memory = func(context.Context, agent.Asker) ([]transcript.Memory, bool, error) { return nil, true, nil }
		}, "mine", true},
	} {
		t.Run(name, func(t *testing.T) {
			var shown string
			b := newBench(t, obedientModel(&shown), lookTool(func(context.Context) (any, error) { return c.result, nil }))
			c.read(&b.agent)
			b.run()
			b.wantReply(b.say("1", "ann", `do look {"path":"the-path"}`), "answered")
			b.wantReply(b.say("1", "ann", "/new"), "new conversation")
			b.wantReply(b.say("1", "ann", "and now?"), "answered")
			if got := episodesOf(t, b.store, "main:test:1"); len(got) != 1 || got[0].Untrusted != c.marked {
				t.Errorf("the log has %+v", got)
			}
			if has := strings.Contains(shown, "look the-path"); has == c.marked || !strings.Contains(shown, `did="look`) || strings.Contains(shown, "left-out") != c.marked {
				t.Errorf("the model is shown\n%s", shown)
			}
		})
	}
}

// Deleting a message also deletes its words in the episode, in the log and for the model.
func TestAnEpisodeGoesWithItsMessage(t *testing.T) {
	var shown string
	b := newBench(t, obedientModel(&shown), lookTool(func(context.Context) (any, error) { return "seen", nil }))
	b.run()
	asked := b.say("1", "alex", `do look {"path":"xyzzy"}`)
	b.wantReply(asked, "answered")
	b.wantReply(b.say("1", "alex", "/new"), "new conversation")
	b.wantReply(b.say("1", "alex", "and now?"), "answered")
	if !strings.Contains(shown, "xyzzy") {
		t.Errorf("before it is deleted the model is shown\n%s", shown)
	}
	b.publish(changeMessage(bus.Deleted, "e1", asked, ""))
	b.wantReply(b.say("1", "alex", "and again?"), "answered")
	if strings.Contains(shown, "xyzzy") || strings.Contains(shown, "lately") {
		t.Errorf("then the model is shown\n%s", shown)
	}
	if got := episodesOf(t, b.store, "main:test:1"); len(got) != 1 || got[0] != nil {
		t.Errorf("the log has %+v", got)
	}
}

// A turn that is stopped leaves an episode, too.
func TestAStoppedTurnLeavesAnEpisode(t *testing.T) {
	started := make(chan bool, 1)
	var shown string
	b := newBench(t, obedientModel(&shown), lookTool(func(ctx context.Context) (any, error) {
		started <- true
		<-ctx.Done()
		return nil, ctx.Err()
	}))
	b.run()
	b.say("1", "ann", `do look {"path":"x"}`)
	<-started
	b.wantReply(b.say("1", "ann", "/stop"), "Stopped")
	b.settled()
	got := episodesOf(t, b.store, "main:test:1")
	if len(got) != 1 || got[0].State != sessions.TurnCancelled || len(got[0].Deeds) != 1 || got[0].Deeds[0].Outcome == "" {
		t.Errorf("the log has %+v", got)
	}
}
