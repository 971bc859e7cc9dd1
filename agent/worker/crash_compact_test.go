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

const longTurn = 40 // calls

// longAgent does what takes many times its window, one call after another.
func longAgent(effects string) agent.Agent {
	made := crashAgent(effects)
	made.Model = model(func(_ context.Context, r llm.Request) (llm.Answer, error) {
		all, err := os.ReadFile(effects)
		if err != nil && !os.IsNotExist(err) {
			return llm.Answer{}, err
		}
		n := strings.Count(string(all), "\n")
		switch {
		case strings.Contains(heard(r), "Summarize the conversation"):
			return text(fmt.Sprintf("%d are done.", n)), nil
		case !strings.Contains(heard(r)+allText(r), "do all of it"):
			return text("I do not know what to do."), nil
		case n < longTurn:
			return calls(fmt.Sprintf(`once {"say":"%d %s"}`, n, strings.Repeat("x", 400))), nil
		}
		return text(fmt.Sprintf("done: %d", n)), nil
	})
	made.MaxIterations, made.ContextTokens = 2*longTurn, 2000
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
		bothWays(t, at, func(t *testing.T, dir string) {
			askIn(t, dir, "m1", "1", "do all of it")
			killed(t, dir, at, inLongTurns)
			goOn(t, dir, inLongTurns)
			if out := outbound(t, openHome(t, dir).bus); len(out) != 1 || out[0].Text != fmt.Sprintf("done: %d", longTurn) {
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
			if len(ran) != longTurn {
				t.Errorf("%d calls ran, want %d", len(ran), longTurn)
			}
		})
	}
}
