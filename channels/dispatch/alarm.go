package dispatch

import (
	"context"
	"time"
)

// An alarm lets one goroutine sleep until something is due, however many others
// make it due. The zero alarm is not usable.
type alarm struct{ rung chan struct{} }

func newAlarm() alarm { return alarm{make(chan struct{}, 1)} }

// ring has run look again at once. A second ring before that changes nothing.
func (a alarm) ring() {
	select {
	case a.rung <- struct{}{}:
	default:
	}
}

// run calls work until ctx is done: first at once, and then whenever the alarm rings
// or as much time has passed as work has asked for. Work that asks for none, with 0,
// sleeps until the alarm rings.
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
