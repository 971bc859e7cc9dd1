package recall

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"parley/sessions/search/sight"
)

// Away are the facts of a platform that gives no answer.
type away struct{ sight.Facts }

func (away) IsIn(ctx context.Context, _ sight.Place, _ string) (bool, error) {
	<-ctx.Done()
	return false, ctx.Err()
}

func (away) IsClosed(ctx context.Context, _ sight.Place, _ string) (bool, error) {
	<-ctx.Done()
	return false, ctx.Err()
}

// A search does not wait for a platform once for each of its chats and threads.
func TestAPlatformWithoutAnswersIsWaitedForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		facts := factsUntil{away{}, began.Add(askAllWithin)}
		for range 5 {
			if _, err := facts.IsIn(t.Context(), sight.Place{}, "s:U1"); err == nil {
				t.Error("somebody's membership is known")
			}
			if _, err := facts.IsClosed(t.Context(), sight.Place{}, "1.1"); err == nil {
				t.Error("it is known who reads a thread")
			}
		}
		if took := time.Since(began); took != askAllWithin {
			t.Errorf("the questions took %v, want %v", took, askAllWithin)
		}
	})
}
