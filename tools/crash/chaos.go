//go:build chaos

package crash

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"parley/tools"
)

// Points returns a function that the program calls at each point where a crash would matter. At the point named in
// PARLEY_KILL_AT (NAME, or NAME/N for the N-th time that it is passed) the process kills itself with SIGKILL; at
// the one in PARLEY_STOP_AT it stops itself (SIGSTOP) until a test continues it. Points returns nil if neither is
// set.
func Points() func(string) {
	kill, stop := pointOf("PARLEY_KILL_AT"), pointOf("PARLEY_STOP_AT")
	if kill == nil && stop == nil {
		return nil
	}
	return func(at string) {
		if kill.passed(at) {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // nothing is left to report to
			select {}
		}
		if stop.passed(at) {
			// Other threads run on for a moment, so this one waits for the test to continue the process.
			continued := make(chan os.Signal, 1)
			signal.Notify(continued, syscall.SIGCONT)
			_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) // a test's own process
			<-continued
			signal.Stop(continued)
		}
	}
}

// Tools returns the tools that exist only for tests, each if its environment variable is set.
func Tools() (all []tools.Tool) {
	if once := os.Getenv("PARLEY_ONCE_URL"); once != "" {
		all = append(all, newRing(once))
	}
	if os.Getenv("PARLEY_UNDECLARED") != "" {
		all = append(all, newDice())
	}
	return all
}

// newDice makes the tool dice, which doesn't declare what it touches.
func newDice() tools.Tool {
	dice := tools.Spec{Name: "dice", Description: "Roll the dice.", Effect: tools.Once, Permission: tools.Network}
	return tools.New(dice, func(context.Context, tools.Call, struct{}) (any, error) { return "rolled", nil })
}

// newRing makes the tool ring: it posts to the URL once, which cannot be undone, and nobody can find out afterwards
// whether it happened. The server at that URL counts the posts of each call.
func newRing(once string) tools.Tool {
	ring := tools.Spec{
		Name: "ring", Description: "Ring the bell.", Effect: tools.Once,
		Touches: tools.TouchesAlways(tools.Touch{Reads: tools.NoFiles{}, Writes: tools.NoFiles{}, Outward: tools.OutwardEffect("ring the bell")}),
	}
	type asked struct {
		N int `json:"n,omitempty"` // tells one call of a turn from another
	}
	return tools.New(ring, func(ctx context.Context, call tools.Call, _ asked) (any, error) {
		at := once + "?call=" + url.QueryEscape(call.Key)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, nil)
		if err != nil {
			return nil, err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return nil, tools.Errorf(tools.OutcomeUnknown, "OUTCOME UNKNOWN: the bell may or may not have been rung")
		}
		return "rung", resp.Body.Close()
	})
}

// LocalWeb reports whether web_fetch may read pages on this machine, because tests serve pages there. It may if
// PARLEY_LOCAL_WEB is set.
func LocalWeb() bool { return os.Getenv("PARLEY_LOCAL_WEB") != "" }

// MostRest returns how long a node waits at most before it opens a link again, as PARLEY_MOST_REST says; 0 means as long as usual.
func MostRest() time.Duration {
	d, err := time.ParseDuration(os.Getenv("PARLEY_MOST_REST"))
	if err != nil {
		return 0
	}
	return d
}

// A point is a place in the program at which a test wants the process to end or stop. It counts down how many more
// times the place must be passed.
type point struct {
	name string
	left atomic.Int64
}

// pointOf returns the point that an environment variable names as NAME or NAME/TIMES; nil if it is not set.
func pointOf(variable string) *point {
	name, count, _ := strings.Cut(os.Getenv(variable), "/")
	if name == "" {
		return nil
	}
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil {
		n = 1
	}
	p := &point{name: name}
	p.left.Store(n)
	return p
}

// passed counts it if the program is at this point, and reports whether that was the last of the number of times that
// the test has set.
func (p *point) passed(at string) bool { return p != nil && at == p.name && p.left.Add(-1) == 0 }
