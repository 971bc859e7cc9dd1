package pacing

import (
	"context"
	"time"
)

// An Alarm wakes a sleeping goroutine when something is due, or earlier if somebody rings it. Only an Alarm from
// NewAlarm works.
type Alarm struct{ rung chan struct{} }

// NewAlarm returns an alarm that has not been rung.
func NewAlarm() Alarm { return Alarm{make(chan struct{}, 1)} }

// Ring makes Run call work immediately. Ringing again before that has no effect.
func (a Alarm) Ring() {
	select {
	case a.rung <- struct{}{}:
	default:
	}
}

// Run calls work until ctx is done: once at the start, and then whenever the alarm rings or the time that work
// returned has passed. If work returns 0, only a ring wakes it.
func (a Alarm) Run(ctx context.Context, work func() (sleep time.Duration)) {
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
