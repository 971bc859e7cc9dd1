package recall

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"parley/sessions/search/sight"
)

// A silentPlatform has facts that it never returns.
type silentPlatform struct{ sight.Facts }

func (silentPlatform) IsIn(ctx context.Context, _ sight.Place, _ string) (bool, error) {
	<-ctx.Done()
	return false, ctx.Err()
}

func (silentPlatform) IsClosed(ctx context.Context, _ sight.Place, _ string) (bool, error) {
	<-ctx.Done()
	return false, ctx.Err()
}

// A search waits only once for a platform that does not answer, and not for each of its chats and threads.
func TestASearchWaitsOnceForASilentPlatform(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		facts := factsWithDeadline{silentPlatform{}, began.Add(askAllTimeout)}
		for range 5 {
			if _, err := facts.IsIn(t.Context(), sight.Place{}, "s:U1"); err == nil {
				t.Error("somebody's membership is known")
			}
			if _, err := facts.IsClosed(t.Context(), sight.Place{}, "1.1"); err == nil {
				t.Error("it is known who reads a thread")
			}
		}
		if took := time.Since(began); took != askAllTimeout {
			t.Errorf("the questions took %v, want %v", took, askAllTimeout)
		}
	})
}
