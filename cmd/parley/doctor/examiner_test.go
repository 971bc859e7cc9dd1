package doctor

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"parley/cmd/parley/api/exchange"
	"parley/cmd/parley/config"
)

// The examiner reuses its findings for half a minute, then examines again for the next caller. A caller waits only a
// moment, and then gets the previous findings.
func TestFindingsAreKeptForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs, takes := 0, time.Second
		d := NewExaminer(ExaminerConfig{
			Settings: func() *config.Config { return nil }, Plain: func(text string) string { return text }, Log: slog.New(slog.DiscardHandler),
			Examine: func(ctx context.Context, _ *config.Config) []Finding {
				runs++
				select {
				case <-time.After(takes):
				case <-ctx.Done():
				}
				return []Finding{{Part: "model", State: fine}}
			},
		})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- d.Run(ctx) }()
		synctest.Wait()
		ask := func(wantRuns, wantFindings int, wantRunning bool, within time.Duration) {
			t.Helper()
			began, got := time.Now(), httptest.NewRecorder()
			r := httptest.NewRequestWithContext(t.Context(), "GET", "/v1/doctor", nil)
			if err := d.show(exchange.New(got, r, nil, time.Minute), r); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			var answer struct {
				Running  bool
				Findings []Finding
			}
			if err := json.Unmarshal(got.Body.Bytes(), &answer); err != nil {
				t.Fatal(err)
			}
			if runs != wantRuns || len(answer.Findings) != wantFindings || answer.Running != wantRunning || time.Since(began) != within {
				t.Errorf("after %v and %d examinations: %+v; want %d", time.Since(began), runs, answer, wantRuns)
			}
		}
		takes = 50 * time.Second
		ask(1, 0, true, maxWait)
		ask(1, 0, true, maxWait)
		ask(1, 1, false, 10*time.Second)
		time.Sleep(reuseFor - time.Millisecond)
		ask(1, 1, false, 0)
		time.Sleep(time.Millisecond)
		takes = time.Hour
		ask(2, 1, true, maxWait)
		time.Sleep(maxExamination)
		synctest.Wait()
		ask(2, 1, false, 0) // the examiner was stopped
		time.Sleep(reuseFor)
		ask(3, 1, true, maxWait)
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		time.Sleep(reuseFor)
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/v1/doctor", nil)
		if err := d.show(exchange.New(httptest.NewRecorder(), r, nil, time.Minute), r); err == nil || runs != 3 {
			t.Errorf("after the stop there were %d examinations: %v", runs, err)
		}
	})
}

// A check that panics becomes a finding, and doesn't end the server.
func TestACheckThatBreaksIsAFinding(t *testing.T) {
	d := NewExaminer(ExaminerConfig{
		Settings: func() *config.Config { return nil }, Plain: func(text string) string { return text }, Log: slog.New(slog.DiscardHandler),
		Examine: func(context.Context, *config.Config) []Finding {
			return sideBySide(3, func(i int) Finding {
				if i == 1 {
					panic("broken")
				}
				return Finding{Part: "model", State: fine}
			})
		},
	})
	if found := d.examine(t.Context()); len(found) != 1 || found[0].State != wrong || found[0].Detail != textCheckBroke {
		t.Errorf("found %+v", found)
	}
}
