package worker_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/agent"
	"parley/agent/llm"
)

const longTurnCalls = 40 // calls

// longAgent returns an agent whose turn takes many times its window, one call after another.
func longAgent(effects string) agent.Agent {
	made := crashAgent(effects)
	made.Model = model(func(_ context.Context, r llm.Request) (llm.Answer, error) {
		all, err := os.ReadFile(effects)
		if err != nil && !os.IsNotExist(err) {
			return llm.Answer{}, err
		}
		n := strings.Count(string(all), "\n")
		switch {
		case strings.Contains(newestUserText(r), "Summarize the conversation"):
			return textAnswer(fmt.Sprintf("%d are done.", n)), nil
		case !strings.Contains(newestUserText(r)+allText(r), "do all of it"):
			return textAnswer("I do not know what to do."), nil
		case n < longTurnCalls:
			return callsAnswer(fmt.Sprintf(`once {"say":"%d %s"}`, n, strings.Repeat("x", 400))), nil
		}
		return textAnswer(fmt.Sprintf("done: %d", n)), nil
	})
	made.MaxIterations, made.ContextTokens = 2*longTurnCalls, 2000
	return made
}

func allText(r llm.Request) string {
	var all strings.Builder
	for _, m := range r.Messages {
		for _, b := range m.Blocks {
			all.WriteString(b.Text)
		}
	}
	return all.String()
}

// A process that dies while a turn is summed up, before the summary is written or after it,
// leaves a turn that goes on: no call runs twice, and the person's words are still there.
func TestKilledWhileATurnIsSummedUp(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"compact:ask", "compact:before", "compact", "compact:ask/2", "compact/2"} {
		runSharedAndSeparate(t, at, func(t *testing.T, dir string) {
			publishSaid(t, dir, "m1", "1", "do all of it")
			runKilled(t, dir, at, inLongTurns)
			runToEnd(t, dir, inLongTurns)
			if out := outboundMail(t, openHome(t, dir).bus); len(out) != 1 || out[0].Text != fmt.Sprintf("done: %d", longTurnCalls) {
				t.Errorf("the person was told %+v", out)
			}
			all, err := os.ReadFile(filepath.Join(dir, "effects"))
			if err != nil {
				t.Fatal(err)
			}
			ran := map[string]bool{}
			for line := range strings.Lines(string(all)) {
				if ran[line] {
					t.Errorf("ran twice: %s", line)
				}
				ran[line] = true
			}
			if len(ran) != longTurnCalls {
				t.Errorf("%d calls ran, want %d", len(ran), longTurnCalls)
			}
		})
	}
}
