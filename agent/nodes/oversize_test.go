package nodes_test

import (
	"strings"
	"testing"

	"parley/tools"
	toolnodes "parley/tools/nodes"
	"parley/tools/nodes/wire"
)

// A result that is too large, or no JSON, is recorded as a failure, and the link goes on. Arguments that are too large are not
// sent.
func TestWhatIsTooLarge(t *testing.T) {
	onBoth(t, func(t *testing.T, f *fleet) {
		a := f.process()
		d := a.join("pi", tool("exec_shell", false))
		d.run = func(wire.Frame, func(string), <-chan struct{}) toolnodes.Outcome {
			return ok(`"` + strings.Repeat("x", toolnodes.MaxResult) + `"`)
		}
		d.link(a)
		wantsCode(t, <-a.begin(t.Context(), "pi", "exec_shell", call(key(0))), tools.ExecutionFailed)
		until(t, "it is acknowledged", func() bool { return d.unacknowledged() == 0 })
		_, err := a.Call(t.Context(), "pi", "exec_shell", []byte(`"`+strings.Repeat("x", toolnodes.MaxResult)+`"`), call(key(1)))
		wantsCode(t, called{err: err}, tools.InvalidArgs)
		d.mu.Lock()
		d.run = func(wire.Frame, func(string), <-chan struct{}) toolnodes.Outcome { return ok(`1`) }
		d.mu.Unlock()
		wants(t, <-a.begin(t.Context(), "pi", "exec_shell", call(key(2))), toolnodes.Done, `1`)
		if calls, _ := d.ran(); calls != 2 {
			t.Errorf("%d calls were run", calls)
		}
	})
}
