package dispatch

import (
	"context"
	"time"
)

// An alarm wakes one sleeping goroutine when something is due, or earlier when others ring it. Only
// newAlarm makes a usable one.
type alarm struct{ rung chan struct{} }

func newAlarm() alarm { return alarm{make(chan struct{}, 1)} }

// ring makes run call its work at once. A second ring before that has no effect.
func (a alarm) ring() {
	select {
	case a.rung <- struct{}{}:
	default:
	}
}

// run calls work until ctx is done: once at the start, and then whenever the alarm rings or
// the time that work has returned is over. If work returns 0, only a ring wakes it.
func (a alarm) run(ctx context.Context, work func() (sleep time.Duration)) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if sleep := work(); sleep > 0 {
			timer.Reset(sleep)
		} else {
			timer.Stop()
		}
		select {
		case <-ctx.Done():
			return
		case <-a.rung:
		case <-timer.C:
		}
	}
}
