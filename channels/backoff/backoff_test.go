package backoff_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"parley/channels/backoff"
)

// Each wait is between half and all of a length that doubles, up to the bound.
func TestWaitsGrow(t *testing.T) {
	var s backoff.Series
	for range 3 {
		if s.HasWaited() {
			t.Error("a series that was reset has begun")
		}
		for _, length := range []time.Duration{200, 400, 800, 1000, 1000} {
			length *= time.Millisecond
			if got := s.Next(time.Second); got < length/2 || got >= length {
				t.Errorf("the wait is %s, want between %s and %s", got, length/2, length)
			}
		}
		s.Reset()
	}
}

func TestSleepEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if !backoff.Sleep(ctx, time.Second) {
			t.Error("a wait within the time is cut off")
		}
		if backoff.Sleep(ctx, time.Hour) {
			t.Error("a wait beyond the time is not cut off")
		}
	})
}
