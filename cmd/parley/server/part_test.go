package server

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A recorder is a part that records what happens to it.
type recorder struct {
	name  string
	lasts time.Duration // how long it works after it was told to stop
	fails error         // what its Run returns at once
	log   *diary
}

// A diary records what happened to several parts, in order.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) add(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line)
}

func (r recorder) Run(ctx context.Context) error {
	if r.fails != nil {
		return r.fails
	}
	<-ctx.Done()
	r.log.add(r.name + " is told")
	<-time.After(r.lasts)
	r.log.add(r.name + " has ended")
	return nil
}

// A stage is told to stop after everything in the stages before it has stopped, whatever the order of the list. The
// parts of one stage are told at the same time.
func TestTheStopGoesStageByStage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diary{}
		parts := []part{
			{"dispatchers", sending, true, recorder{name: "dispatchers", log: d}},
			{"worker", answering, true, recorder{name: "worker", lasts: time.Minute, log: d}},
			{"schedules", answering, true, recorder{name: "schedules", lasts: time.Second, log: d}},
			{"done early", receiving, true, running(func(context.Context) error { return nil })},
			{"not here", listening, false, recorder{name: "not here", log: d}},
			{"front", listening, true, recorder{name: "front", lasts: time.Second, log: d}},
			{"looks", beside, true, recorder{name: "looks", lasts: time.Hour, log: d}},
			{"nothing to run", upkeep, true, struct{}{}},
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- runParts(ctx, parts, func() { d.add("the stop") }) }()
		synctest.Wait()
		if len(d.lines) > 0 {
			t.Fatalf("before the stop: %q", d.lines)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		slices.Sort(d.lines[1:3]) // these are told at the same time
		slices.Sort(d.lines[4:6])
		want := []string{
			"the stop", "front is told", "looks is told", "front has ended", "schedules is told", "worker is told", "schedules has ended", "worker has ended",
			"dispatchers is told", "dispatchers has ended", "looks has ended",
		}
		if !slices.Equal(d.lines, want) {
			t.Errorf("it went %q, want %q", d.lines, want)
		}
	})
}

// A part that fails stops all others in the usual order, and the server returns its error.
func TestAPartThatCannotGoOnStopsTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, broken := &diary{}, errors.New("the platform rejected")
		err := runParts(t.Context(), []part{
			{"dispatchers", sending, true, recorder{name: "dispatchers", log: d}},
			{"gateways", receiving, true, recorder{fails: broken, log: d}},
			{"worker", answering, true, recorder{name: "worker", lasts: time.Minute, log: d}},
		}, func() { d.add("the stop") })
		if !errors.Is(err, broken) {
			t.Errorf("the server ended with %v", err)
		}
		if want := []string{"the stop", "worker is told", "worker has ended", "dispatchers is told", "dispatchers has ended"}; !slices.Equal(d.lines, want) {
			t.Errorf("it went %q, want %q", d.lines, want)
		}
	})
}

// having returns the parts that have an ability, in the order of the list.
func TestPartsAreFoundByTheirAbilities(t *testing.T) {
	one, two := &closing{}, &closing{}
	parts := []part{{is: one}, {is: running(nil)}, {is: two}}
	if got := having[closer](parts); len(got) != 2 || got[0] != closer(one) || got[1] != closer(two) {
		t.Errorf("closers are %v", got)
	}
	if got := having[forgetter](parts); got != nil {
		t.Errorf("forgetters are %v", got)
	}
}

// A closing is a part that only has Close.
type closing struct{ closed bool }

func (c *closing) Close() error { c.closed = true; return nil }
