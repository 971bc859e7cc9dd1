package inputs

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	agentasks "parley/agent/asks"
	"parley/sessions"
	"parley/sessions/workspace"
	"parley/tools"
	"parley/tools/files"
)

// A workspace that takes too long to be read is compared by the times of its files, and one that takes
// too long to be looked through is not compared at all.
func TestALargeWorkspaceIsComparedByTimesOrNotAtAll(t *testing.T) {
	tests := map[string]struct {
		slow  string // the modes that never end
		modes []string
		want  agentasks.InputsHash // zero means an error
	}{
		"small":                         {"", []string{byContent, byTimes}, agentasks.InputsHash{Mode: byContent, Sum: "named content"}},
		"large":                         {byContent, []string{byContent, byTimes}, agentasks.InputsHash{Mode: byTimes, Sum: "named times"}},
		"too large":                     {byContent + byTimes, []string{byContent, byTimes}, agentasks.InputsHash{}},
		"too large since it was asked":  {byContent, []string{byContent}, agentasks.InputsHash{}},
		"in the way of a newer release": {"", []string{"newer"}, agentasks.InputsHash{}},
		"by names, as before":           {byContent + byTimes, []string{byNameHere}, agentasks.InputsHash{Sum: "named "}},
		"by names alone":                {byContent + byTimes, []string{byName}, agentasks.InputsHash{Mode: byName, Sum: "named name"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got, err := compareBy(t.Context(), "named ", test.modes, func(ctx context.Context, mode string) (string, error) {
					switch {
					case mode == "newer":
						return digestBy(ctx, nil, mode)
					case mode != "" && strings.Contains(test.slow, mode):
						<-ctx.Done()
						return "", ctx.Err()
					}
					return mode, nil
				})
				if got != test.want || (err == nil) != (test.want != agentasks.InputsHash{}) {
					t.Errorf("got %+v, %v; want %+v", got, err, test.want)
				}
			})
		})
	}
	// A turn that ends is not a large workspace.
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := compareBy(ended, "", []string{byContent}, func(ctx context.Context, _ string) (string, error) { return "", ctx.Err() }); err == nil || strings.Contains(err.Error(), "too many") {
		t.Errorf("a turn that has ended gave %v", err)
	}
}

// Where a job writes all the time, the model is told which one, and how to go on.
func TestWhoKeepsAWorkspaceChangingIsNamed(t *testing.T) {
	if got := writersText([]sessions.Job{{ID: "j1"}, {ID: "j2"}}); !strings.Contains(got, "(j1, j2)") || !strings.Contains(got, "job_stop") {
		t.Errorf("with two jobs it says %q", got)
	}
	if got := writersText(nil); strings.Contains(got, "job") || !strings.Contains(got, "try again") {
		t.Errorf("without a job it says %q", got)
	}
}

// Where it is not known what the other processes understand, calls are compared as every release does,
// and in the way of those who have asked.
func TestCallsAreComparedAsOthersUnderstand(t *testing.T) {
	all, err := workspace.OpenFixed(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	older := byNameHere
	for name, c := range map[string]struct {
		able bool
		err  error
		like *string
		want string

		undeclared bool // nobody has said what the call touches
	}{
		"all are of this release": {able: true, want: byName},
		"an older one serves":     {want: byNameHere},
		"the bus is away":         {able: true, err: errors.New("nobody answers"), want: byNameHere},
		"an older one has asked":  {able: true, like: &older, want: byNameHere},
		"it may read any file":    {able: true, undeclared: true, want: byContent},
	} {
		t.Run(name, func(t *testing.T) {
			cmp := New(Config{
				Workspace: all.Open,
				Anywhere:  func(context.Context) (bool, error) { return c.able, c.err },
			})
			call := files.Reading(tools.Call{Session: "main:telegram:42"}, "notes.md")
			if c.undeclared {
				call.Touches = nil
			}
			got, err := cmp.HashFiles(t.Context(), call, c.like)
			if err != nil || got.Mode != c.want || got.Sum == "" {
				t.Errorf("it is compared by %+v, %v; want the mode %q", got, err, c.want)
			}
		})
	}
}
