package chaos

import (
	"syscall"
	"testing"
	"time"

	"parley/cmd/parley/parleytest"
)

// If a process is paused at the worst moments for longer than a lease, another process takes over its work. When the
// paused process continues, it does none of that work again.
func TestPausedProcessDoesNothingTwice(t *testing.T) {
	for _, c := range []struct {
		at, role string
		repeats  int // how many messages may be sent twice
	}{
		{"c4", worker, 0},        // before it checks its lease
		{"c4:held", worker, 0},   // after that, and before the call runs
		{"c5:before", worker, 0}, // the call has run
		{"c6", worker, 0},
		{"send:begun", gateway, 0}, // before it checks its lease
		{"send:held", gateway, 0},  // after that: the transport checks it once more
		{"send:sent", gateway, 1},  // the platform has the message, and the book does not know that yet
	} {
		t.Run(c.at, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t, stormModel)
			roles := map[string]string{worker: gateway, gateway: worker}
			f.join("other", roles[c.role])
			paused := f.join("paused", c.role, "PARLEY_STOP_AT="+c.at+"/2")
			s := newStorm(f, stormSeed, 1, 5, 0)
			s.send(0, request{what: askBegin})
			parleytest.WaitFor(t, "the first answer", func() bool { return s.answered(0) == 1 })
			s.send(0, request{what: askRemember})
			next := f.join("next", c.role)
			s.send(0, request{what: askRemember})
			parleytest.WaitFor(t, "the next process to take over", func() bool { return s.answered(0) == 3 })
			paused.signal(syscall.SIGCONT, 0)
			s.send(0, request{what: askRemember})
			parleytest.WaitFor(t, "an answer", func() bool { return s.answered(0) == 4 })
			next.end(syscall.SIGTERM)
			s.send(0, request{what: askRemember})
			parleytest.WaitFor(t, "the paused process to be of use again", func() bool { return s.answered(0) == 5 })
			a := s.audit()
			for _, wrong := range a.violations {
				t.Error(wrong)
			}
			if a.repeats > c.repeats {
				t.Errorf("%d messages were sent twice, want %d at most: %s; %v", a.repeats, c.repeats, a.twice, a.interruptedBy)
			}
			if a.slowest < 3*time.Second {
				t.Errorf("the slowest answer took %v: the process was not paused", a.slowest)
			}
		})
	}
}
