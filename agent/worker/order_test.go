package worker_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"parley/tools"
)

// followingTool is a tool whose calls run after those of other tools.
type followingTool struct {
	tools.Tool
	after []string
}

func (f followingTool) Spec() tools.Spec {
	s := f.Tool.Spec()
	s.After = f.after
	return s
}

// A ranCalls records the calls that ran, in order.
type ranCalls struct {
	mu    sync.Mutex
	words []string
}

func (r *ranCalls) note(call tools.Call, said string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.words = append(r.words, call.Name+said)
	if said == "fails" {
		return errors.New("it failed")
	}
	return nil
}

func (r *ranCalls) all() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.words, " ")
}

// A call runs after the calls of the same step that its tool comes after, however the model has
// ordered them, and the model reads the results in its own order.
func TestACallRunsAfterThoseThatItDependsOn(t *testing.T) {
	for name, tc := range map[string]struct {
		uses []string
		ran  string // in order; "" if the order does not matter
		want []string
	}{
		"in another order":     {[]string{`c {"say":"3"}`, `b {"say":"2"}`, `a {"say":"1"}`}, "a1 b2 c3", []string{`{"said":"3"}`, `{"said":"2"}`, `{"said":"1"}`}},
		"after each of them":   {[]string{`b {"say":"2"}`, `a {"say":"1"}`, `a {"say":"0"}`}, "a1 a0 b2", []string{`{"said":"2"}`, `{"said":"1"}`, `{"said":"0"}`}},
		"alone":                {[]string{`c {"say":"3"}`}, "c3", []string{`{"said":"3"}`}},
		"each after the other": {[]string{`y {"say":"2"}`, `x {"say":"1"}`}, "y2 x1", []string{`{"said":"2"}`, `{"said":"1"}`}},
		"after one that failed": {[]string{`c {"say":"3"}`, `b {"say":"2"}`, `a {"say":"fails"}`, `d {"say":"4"}`}, "afails d4",
			[]string{"Not run: it runs after b, which failed", "Not run: it runs after a, which failed", "it failed", `{"said":"4"}`}},
	} {
		t.Run(name, func(t *testing.T) {
			var ran ranCalls
			one := func(name string, after ...string) tools.Tool {
				return followingTool{echo(name, tools.Pure, ran.note), after}
			}
			b := newBench(t, actModel(tc.uses...), one("a"), one("b", "a"), one("c", "b"), one("d"), one("x", "y"), one("y", "x"))
			b.run()
			b.say("1", "ann", "go")
			lines := strings.Split(b.reply().Text, "\n")
			if ran.all() != tc.ran {
				t.Errorf("it ran %q, want %q", ran.all(), tc.ran)
			}
			if len(lines) != len(tc.want) {
				t.Fatalf("the model read %q", lines)
			}
			for i, want := range tc.want {
				if !strings.Contains(lines[i], want) {
					t.Errorf("result %d is %q, want %q", i, lines[i], want)
				}
			}
		})
	}
}

// A call that depends on one that people have to approve waits with it.
func TestACallWaitsForAnApprovalThatItDependsOn(t *testing.T) {
	for answer, want := range map[string]string{"approve": `{"said":"2"}`, "deny": "Not run: it runs after act, which failed"} {
		t.Run(answer, func(t *testing.T) {
			var ran ranCalls
			b, _, acted := newActBench(t, actModel(`then {"say":"2"}`, `act {"say":"1"}`), followingTool{echo("then", tools.Once, ran.note), []string{"act"}})
			b.run()
			b.say("1", "ann", "go")
			id, _ := b.nextAskID()
			if ran.all() != "" {
				t.Error("it ran while the other call waited")
			}
			b.command("1", owner, answer+" "+id)
			b.reply() // how the request has ended
			lines := strings.Split(b.reply().Text, "\n")
			if len(lines) != 2 || !strings.Contains(lines[0], want) || (answer == "approve") != (acted.Load() == 1 && ran.all() == "then2") {
				t.Errorf("the model read %q; %d calls of act and %q ran", lines, acted.Load(), ran.all())
			}
		})
	}
}
