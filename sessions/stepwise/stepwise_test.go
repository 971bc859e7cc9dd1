package stepwise_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/sessions/stepwise"
	"parley/tools/testlog"
)

// After an error, which is logged once, the work continues. After the interval, it begins again.
func TestWorkContinuesAfterErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log testlog.Buffer
		began := time.Now()
		var at []time.Duration
		s := &stepwise.Work{Name: "this", Interval: time.Hour, Log: slog.New(slog.NewTextHandler(&log, nil)), Step: func(context.Context) (bool, error) {
			at = append(at, time.Since(began).Truncate(time.Second))
			if n := len(at); n == 3 || n == 4 {
				return false, errors.New("the disk is full")
			}
			<-time.After(2 * time.Second)
			return len(at) < 6, nil
		}}
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Minute)
		defer cancel()
		if err := s.Run(ctx); err != nil {
			t.Fatal(err)
		}
		want := []time.Duration{0, 4, 8, 68, 128, 132, 134 + 3600}
		for i := range max(len(want), len(at)) {
			if i >= len(want) || i >= len(at) || at[i] != want[i]*time.Second {
				t.Fatalf("steps at %v, want at %v seconds", at, want)
			}
		}
		if n := strings.Count(log.String(), "the disk is full"); n != 1 {
			t.Errorf("the error was logged %d times", n)
		}
	})
}
