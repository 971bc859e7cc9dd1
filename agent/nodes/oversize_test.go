package nodes_test

import (
	"strings"
	"testing"

	"parley/tools"
	toolnodes "parley/tools/nodes"
	"parley/tools/nodes/wire"
)

// A result that is too large or not JSON is recorded as a failure, and the link stays. Arguments that are too large are
// not sent.
func TestTooLargeResultsAndArguments(t *testing.T) {
	onHomeAndFleet(t, func(t *testing.T, f *fleet) {
		a := f.process()
		d := a.join("pi", tool("exec_shell", false))
		d.run = func(wire.Frame, func(string), <-chan struct{}) toolnodes.Outcome {
			return doneOutcome(`"` + strings.Repeat("x", toolnodes.MaxResult) + `"`)
		}
		d.link(a)
		wantCode(t, <-a.startCall(t.Context(), "pi", "exec_shell", toolCall(callKey(0))), tools.ExecutionFailed)
		waitUntil(t, "it is acknowledged", func() bool { return d.unacknowledged() == 0 })
		_, err := a.Call(t.Context(), "pi", "exec_shell", []byte(`"`+strings.Repeat("x", toolnodes.MaxResult)+`"`), toolCall(callKey(1)))
		wantCode(t, callResult{err: err}, tools.InvalidArgs)
		d.mu.Lock()
		d.run = func(wire.Frame, func(string), <-chan struct{}) toolnodes.Outcome { return doneOutcome(`1`) }
		d.mu.Unlock()
		wantOutcome(t, <-a.startCall(t.Context(), "pi", "exec_shell", toolCall(callKey(2))), toolnodes.Done, `1`)
		if calls, _ := d.ran(); calls != 2 {
			t.Errorf("%d calls were run", calls)
		}
	})
}
