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

// How a Desk examines: whoever asks again within keptFor gets the same findings, so that nobody can have it
// ask models and platforms without end. A caller waits for waitMost at most, and an examination ends after
// examineMost.
const (
	keptFor     = 30 * time.Second
	waitMost    = 20 * time.Second
	examineMost = 5 * time.Minute
)

// A DeskConfig holds what a Desk needs.
type DeskConfig struct {
	Settings func() *config.Config    // those in force
	Plain    func(text string) string // takes secrets out of a text
	Examine  func(ctx context.Context, cfg *config.Config) []Finding
	Log      *slog.Logger
}

// A Desk tells programs what is wrong, while the bot serves. It examines when somebody asks, and only once at a
// time, however many ask.
type Desk struct {
	cfg DeskConfig

	wanted chan struct{} // has a value once somebody has asked

	mu      sync.Mutex
	serving bool          // whether Run runs
	running chan struct{} // closed once the examination under way has ended; nil if there is none
	last    result
}

// A result is what an examination has found.
type result struct {
	at       time.Time // when it ended; zero if there was none yet
	took     time.Duration
	findings []Finding
}

// NewDesk makes a Desk.
func NewDesk(c DeskConfig) *Desk { return &Desk{cfg: c, wanted: make(chan struct{}, 1)} }

// Run has the desk examine, when somebody asks, until ctx is done.
func (d *Desk) Run(ctx context.Context) error {
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

// serve notes whether examinations are made. One that nobody makes any more has ended.
func (d *Desk) serve(serving bool) {
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

// end notes what an examination has found.
func (d *Desk) end(found result) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = found
	close(d.running)
	d.running = nil
}

// Routes returns the requests that the API serves.
func (d *Desk) Routes() []exchange.Route {
	return []exchange.Route{{Pattern: "GET /v1/doctor", May: exchange.Caller.IsAdmin, Serve: d.show}}
}

// show answers with what was found just now, or what is found now. If that takes long, it answers with what was
// found before, and that an examination runs.
func (d *Desk) show(w *exchange.Answer, r *http.Request) error {
	running, err := d.ask()
	if err != nil {
		return err
	}
	if running != nil {
		late := time.NewTimer(waitMost)
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
		Again    *time.Time `json:"again,omitempty"` // when the next ones can be
		Took     int64      `json:"took_ms"`
		Findings []Finding  `json:"findings"`
	}{Running: busy, Findings: []Finding{}, Took: last.took.Milliseconds()}
	if !last.at.IsZero() {
		at, again := last.at.UTC(), last.at.Add(keptFor).UTC()
		answer.At, answer.Again = &at, &again
		answer.Findings = append(answer.Findings, last.findings...)
	}
	return w.JSON(http.StatusOK, answer)
}

// ask begins an examination unless one is under way or has just ended. It returns what is closed at the end of
// the one under way; nil if there is none.
func (d *Desk) ask() (running chan struct{}, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.running != nil:
		return d.running, nil
	case !d.last.at.IsZero() && time.Since(d.last.at) < keptFor:
		return nil, nil
	case !d.serving:
		return nil, exchange.Unavailable("unavailable", "the server isn't serving right now: try again later")
	}
	d.running = make(chan struct{})
	d.wanted <- struct{}{} // there is room: the one before has been taken
	return d.running, nil
}

// examine returns what is wrong, without secrets. A check that breaks is a finding, and does not end the server.
func (d *Desk) examine(ctx context.Context) (found []Finding) {
	ctx, cancel := context.WithTimeout(ctx, examineMost)
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
