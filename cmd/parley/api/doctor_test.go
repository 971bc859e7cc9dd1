package api_test

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/cmd/parley/config"
	"parley/cmd/parley/doctor"
)

// A patient is a rig with a doctor whose examinations last as long as the test wants.
type patient struct {
	*rig
	runs atomic.Int64
	hold chan struct{} // each examination waits for one value; closing it lets all pass
	mu   sync.Mutex
	says []doctor.Finding
}

// newPatient returns a patient. desk says whether its examiner runs.
func newPatient(t *testing.T, desk bool) *patient {
	t.Helper()
	p := &patient{hold: make(chan struct{})}
	d := doctor.NewExaminer(doctor.ExaminerConfig{
		Settings: func() *config.Config { return &config.Config{} }, Log: slog.New(slog.DiscardHandler),
		Plain:   func(text string) string { return strings.ReplaceAll(text, "swordfish", "[redacted]") },
		Examine: p.examine,
	})
	if desk {
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = d.Run(ctx) }()
		t.Cleanup(func() { stop(); <-ended })
	}
	p.rig = newRig(t, func(x *rig) { x.cfg.Further = d.Routes() })
	return p
}

func (p *patient) examine(ctx context.Context, _ *config.Config) []doctor.Finding {
	p.runs.Add(1)
	select {
	case <-p.hold:
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.says == nil {
		panic("a check")
	}
	return p.says
}

// A checkup is the API's answer to a request for an examination.
type checkup struct {
	Running   bool
	At, Again time.Time
	Findings  []doctor.Finding
}

// ask requests an examination, again and again until the examiner runs.
func (p *patient) ask() checkup {
	p.t.Helper()
	for {
		if r := p.get("/v1/doctor", adminToken); r.StatusCode != http.StatusServiceUnavailable {
			return into[checkup](p.t, r)
		}
	}
}

// Many callers share one examination of models and platforms. Its findings contain no secrets, and only admins may
// request it.
func TestTheDoctorExaminesOnceForAll(t *testing.T) {
	p := newPatient(t, true)
	p.says = []doctor.Finding{{Part: "model", State: "wrong", Detail: "the key swordfish is refused", Remedy: "set swordfish"}, {Part: "home", State: "ok", Detail: "/h"}}
	for _, token := range []string{ciToken, opsToken, chatToken, readToken, scrapeTok} {
		if r := p.get("/v1/doctor", token); r.StatusCode != http.StatusForbidden {
			t.Errorf("%s may ask: %d", token, r.StatusCode)
		}
	}
	var asking sync.WaitGroup
	for range 8 {
		asking.Go(func() {
			got := p.ask()
			want := []doctor.Finding{{Part: "model", State: "wrong", Detail: "the key [redacted] is refused", Remedy: "set [redacted]"}, {Part: "home", State: "ok", Detail: "/h"}}
			if len(got.Findings) != 2 || got.Findings[0] != want[0] || got.Findings[1] != want[1] || got.Running || !got.Again.After(got.At) {
				t.Errorf("found %+v", got)
			}
		})
	}
	p.hold <- struct{}{} // a second examination would wait forever
	asking.Wait()
	p.ask()
	if n := p.runs.Load(); n != 1 {
		t.Errorf("examined %d times", n)
	}
}

// A check that panics becomes a finding, and the server goes on.
func TestABrokenCheckIsAFinding(t *testing.T) {
	p := newPatient(t, true)
	close(p.hold)
	if got := p.ask(); len(got.Findings) != 1 || got.Findings[0].State != "wrong" || got.Findings[0].Part != "doctor" {
		t.Errorf("found %+v", got)
	}
}

// The server examines nothing before it serves, or after it has stopped.
func TestTheDoctorExaminesWhileTheServerServes(t *testing.T) {
	p := newPatient(t, false)
	if r := p.get("/v1/doctor", adminToken); r.StatusCode != http.StatusServiceUnavailable || p.runs.Load() != 0 {
		t.Errorf("before it serves: %d %s", r.StatusCode, r.body)
	}
}
