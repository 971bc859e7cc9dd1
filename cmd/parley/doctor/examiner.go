package doctor

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"parley/cmd/parley/api/exchange"
	"parley/cmd/parley/config"
)

// These are the limits of an Examiner. Within reuseFor everybody gets the same findings, so nobody can cause endless
// requests to models and platforms. A caller waits at most maxWait, and an examination ends after maxExamination.
const (
	reuseFor       = 30 * time.Second
	maxWait        = 20 * time.Second
	maxExamination = 5 * time.Minute
)

// An ExaminerConfig holds what an Examiner needs.
type ExaminerConfig struct {
	Settings func() *config.Config    // returns the settings in effect
	Plain    func(text string) string // removes secrets from a text
	Examine  func(ctx context.Context, cfg *config.Config) []Finding
	Log      *slog.Logger
}

// An Examiner reports to programs what is wrong while the bot serves. It examines when somebody asks, and runs only
// one examination at a time, however many ask.
type Examiner struct {
	cfg ExaminerConfig

	wanted chan struct{} // has a value once a caller has asked

	mu      sync.Mutex
	serving bool          // whether Run is running
	running chan struct{} // closed when the current examination ends; nil if there is none
	last    result
}

// A result is what an examination has found, and when.
type result struct {
	at       time.Time // when it ended; zero if there was none yet
	took     time.Duration
	findings []Finding
}

// NewExaminer returns an Examiner.
func NewExaminer(c ExaminerConfig) *Examiner {
	return &Examiner{cfg: c, wanted: make(chan struct{}, 1)}
}

// Run examines whenever a caller asks, until ctx is done.
func (d *Examiner) Run(ctx context.Context) error {
	d.serve(true)
	defer d.serve(false)
	for {
		select {
		case <-d.wanted:
			began := time.Now()
			d.end(result{findings: d.examine(ctx), took: time.Since(began), at: time.Now()})
		case <-ctx.Done():
			return nil
		}
	}
}

// serve records whether the Examiner examines. If it no longer does, serve ends the running examination.
func (d *Examiner) serve(serving bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.serving = serving; serving || d.running == nil {
		return
	}
	close(d.running)
	d.running = nil
	select {
	case <-d.wanted:
	default:
	}
}

// end records the findings of an examination.
func (d *Examiner) end(found result) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = found
	close(d.running)
	d.running = nil
}

// Routes returns the routes that the API serves.
func (d *Examiner) Routes() []exchange.Route {
	return []exchange.Route{{Pattern: "GET /v1/doctor", May: exchange.Caller.IsAdmin, Serve: d.show}}
}

// show answers with what was found recently, or else with what is found now. If that takes long, it answers with
// the previous findings, and says that an examination is running.
func (d *Examiner) show(w *exchange.Answer, r *http.Request) error {
	running, err := d.ask()
	if err != nil {
		return err
	}
	if running != nil {
		late := time.NewTimer(maxWait)
		defer late.Stop()
		select {
		case <-running:
		case <-late.C:
		case <-r.Context().Done():
		}
	}
	d.mu.Lock()
	last, busy := d.last, d.running != nil
	d.mu.Unlock()
	answer := struct {
		Running  bool       `json:"running"`
		At       *time.Time `json:"at,omitempty"`    // when the findings were made
		Again    *time.Time `json:"again,omitempty"` // when the next ones can be made
		Took     int64      `json:"took_ms"`
		Findings []Finding  `json:"findings"`
	}{Running: busy, Findings: []Finding{}, Took: last.took.Milliseconds()}
	if !last.at.IsZero() {
		at, again := last.at.UTC(), last.at.Add(reuseFor).UTC()
		answer.At, answer.Again = &at, &again
		answer.Findings = append(answer.Findings, last.findings...)
	}
	return w.JSON(http.StatusOK, answer)
}

// ask starts an examination unless one is running or has just ended. It returns a channel that is closed when the
// running one ends, or nil if none is running.
func (d *Examiner) ask() (running chan struct{}, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.running != nil:
		return d.running, nil
	case !d.last.at.IsZero() && time.Since(d.last.at) < reuseFor:
		return nil, nil
	case !d.serving:
		return nil, exchange.Unavailable("unavailable", "the server isn't serving right now: try again later")
	}
	d.running = make(chan struct{})
	d.wanted <- struct{}{} // there is room: the previous value was taken
	return d.running, nil
}

// examine returns what is wrong, without secrets. A check that panics becomes a finding, and doesn't end the
// server.
func (d *Examiner) examine(ctx context.Context) (found []Finding) {
	ctx, cancel := context.WithTimeout(ctx, maxExamination)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			stack := debug.Stack()
			if b, ok := p.(*brokenCheck); ok {
				p, stack = b.with, b.stack
			}
			d.cfg.Log.Error("a check panicked", slog.String("panic", fmt.Sprintf("%T", p)), slog.String("stack", string(stack)))
			found = []Finding{{Part: "doctor", State: wrong, Detail: textCheckBroke, Remedy: "check the server's log, and run parley doctor"}}
		}
	}()
	for _, f := range d.cfg.Examine(ctx, d.cfg.Settings()) {
		found = append(found, Finding{d.cfg.Plain(f.Part), f.State, d.cfg.Plain(f.Detail), d.cfg.Plain(f.Remedy)})
	}
	return found
}
