package guard

import (
	"context"
	"testing"

	"parley/tools"
)

// A tool that does not declare what it touches counts as one that acts on the outside and changes files, and rules see
// its arguments.
func TestAnUndeclaredToolActsOutward(t *testing.T) {
	g, err := New(Config{AskUntrusted: true, AllAgents: Policy{Deny: []string{`dice(*"sides":7*)`}}, ReachesNetwork: func(tools.Call) bool { return false }})
	if err != nil {
		t.Fatal(err)
	}
	dice := newCall("dice", "say", "x")
	if got := g.Decide(t.Context(), dice); got.Decision != "" {
		t.Errorf("with nothing untrusted it is %+v", got)
	}
	if got := g.Decide(t.Context(), untrustedCall(dice)); got.Decision != tools.Ask {
		t.Errorf("after something untrusted it is %+v", got)
	}
	seven := dice
	seven.Args = []byte(`{"say":"x","sides":7}`)
	if got := g.Decide(t.Context(), seven); got.Decision != tools.Deny {
		t.Errorf("a rule about its arguments makes it %+v", got)
	}
	if ReadsOnlyNamed(dice) {
		t.Error("it is taken to read no other files than it names")
	}
	g, err = New(Config{AskUntrusted: true, ReachesNetwork: func(tools.Call) bool { return false }, NetworkedReader: func(context.Context, tools.Call) (string, error) { return "the job j1", nil }})
	if err != nil {
		t.Fatal(err)
	}
	if what := g.describeNetworkedReader(t.Context(), untrustedCall(dice), dice.Touch()); what == "" {
		t.Error("what it writes is not asked about while a job reads the files")
	}
}

// If a tool declares only a part, the worst is assumed about the rest.
func TestAHalfDeclaredTool(t *testing.T) {
	g, err := New(Config{AskUntrusted: true, ReachesNetwork: func(tools.Call) bool { return false }, NetworkedReader: func(context.Context, tools.Call) (string, error) { return "the job j1", nil }})
	if err != nil {
		t.Fatal(err)
	}
	whole := tools.Touch{Subject: tools.Paths{"x"}, Reads: tools.NoFiles{}, Writes: tools.NoFiles{}, Outward: tools.NothingOutward{}}
	for what, leave := range map[string]func(*tools.Touch){
		"nothing":                  func(*tools.Touch) {},
		"what it does outside":     func(t *tools.Touch) { t.Outward = nil },
		"which files it may write": func(t *tools.Touch) { t.Writes = nil },
	} {
		touch := whole
		leave(&touch)
		dice := untrustedCall(tools.Call{Name: "dice", Args: []byte(`{}`), Touches: tools.TouchesAlways(touch)})
		want := tools.Ask
		if what == "nothing" {
			want = ""
		}
		if got := g.Decide(t.Context(), dice); got.Decision != want {
			t.Errorf("where it leaves out %s it is %+v, want %q", what, got, want)
		}
	}
}
