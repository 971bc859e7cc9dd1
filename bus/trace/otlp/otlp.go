// Package otlp sends spans to a collector of traces, with OpenTelemetry's protocol: over HTTP, as JSON.
//
// otlp.go keeps spans until they are sent, in batches; request.go sends a batch once; encode.go writes it as JSON.
//
// Recording a span never waits for the collector: it only adds the span to a list. If the collector doesn't accept
// the spans in time, the list grows to its limit, and then further spans are dropped and counted. Spans that a
// process has not sent when it is killed are lost.
package otlp

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"parley/bus/trace"
)

const (
	maxWaiting   = 4096             // how many spans may wait to be sent
	maxBatch     = 256              // how many spans a request contains at most
	gatherFor    = time.Second      // how long a span waits for others to be sent with it
	giveUpAfter  = 5 * time.Minute  // how long sending the same spans is tried
	firstRetry   = time.Second      // the wait after the first failure; it doubles after each further one
	maxRetryWait = 30 * time.Second // the longest wait between two tries, unless the collector asks for more
	flushTime    = 3 * time.Second  // how long spans may still be sent when the process ends
)

// A Collector is a place where spans are sent.
type Collector struct {
	URL     string   // "" means that none are wanted
	Headers []string // entries of the form NAME: VALUE
	Text    bool     // whether spans include what was said
}

// A Service is the process whose spans are sent, as others see it.
type Service struct {
	Version  string
	Instance string // unique for each process
	Role     string
}

// These are the results that Config.Count counts.
const (
	Sent    = "sent"
	Dropped = "dropped" // never sent: too many were waiting, the collector accepted none for too long, or another one was set
	Refused = "refused" // refused by the collector
)

// Config holds what New needs.
type Config struct {
	Collector Collector
	Service   Service
	Count     func(result string, spans int)
	Redact    func(text string) string // removes secrets from a text for the log
	Log       *slog.Logger
}

// An Exporter sends spans to a collector. It is a trace.Recorder.
type Exporter struct {
	cfg          Config
	clients      clients
	anyWaiting   chan struct{} // has a value when spans wait
	batchWaiting chan struct{} // has a value when enough spans for a request wait

	mu      sync.Mutex
	target  *target
	waiting []trace.Span // they were recorded for to, and must not go elsewhere
}

// A target is a collector for as long as it is the current one.
type target struct {
	Collector
	replaced chan struct{} // closed once another one is set
	failing  bool          // whether the log says that the collector doesn't accept spans; only Run uses it
}

func newTarget(c Collector) *target { return &target{Collector: c, replaced: make(chan struct{})} }

// mayShareSpans reports whether spans recorded for one collector may be sent to the other.
func (c Collector) mayShareSpans(other Collector) bool {
	return c.URL == other.URL && c.Text == other.Text && slices.Equal(c.Headers, other.Headers)
}

var _ trace.Recorder = (*Exporter)(nil)

// New returns an Exporter, which sends spans while Run runs.
func New(c Config) *Exporter {
	return &Exporter{cfg: c, clients: newClients(), anyWaiting: make(chan struct{}, 1), batchWaiting: make(chan struct{}, 1), target: newTarget(c.Collector)}
}

// Set changes where spans are sent from now on. If that is another collector, or it has other headers or gets no
// texts anymore, the waiting spans are dropped, because they may contain what only the previous one may get. A
// request that has begun continues.
func (e *Exporter) Set(c Collector) {
	e.mu.Lock()
	was, left := e.target, len(e.waiting)
	if was.mayShareSpans(c) {
		e.mu.Unlock()
		return
	}
	e.target, e.waiting = newTarget(c), nil
	e.mu.Unlock()
	close(was.replaced)
	if left > 0 {
		e.cfg.Count(Dropped, left)
	}
}

// Detail implements trace.Recorder.
func (e *Exporter) Detail() trace.Detail {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.target.detail()
}

func (c Collector) detail() trace.Detail {
	switch {
	case c.URL == "":
		return trace.Nothing
	case c.Text:
		return trace.Texts
	}
	return trace.Spans
}

// Record implements trace.Recorder.
func (e *Exporter) Record(spans ...trace.Span) {
	e.mu.Lock()
	if len(spans) == 0 || e.target.detail() == trace.Nothing {
		e.mu.Unlock()
		return
	}
	fit := min(len(spans), maxWaiting-len(e.waiting))
	e.waiting = append(e.waiting, spans[:fit]...)
	enough := len(e.waiting) >= maxBatch
	e.mu.Unlock()
	if fit < len(spans) {
		e.cfg.Count(Dropped, len(spans)-fit)
	}
	signal(e.anyWaiting)
	if enough {
		signal(e.batchWaiting)
	}
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default: // the previous value was not read yet
	}
}

// Run sends recorded spans until ctx is done, and after that the rest for a short time. It returns nil.
func (e *Exporter) Run(ctx context.Context) error {
	work, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	unwatch := context.AfterFunc(ctx, func() { time.AfterFunc(flushTime, cut) })
	defer unwatch()
	for ctx.Err() == nil {
		select {
		case <-e.anyWaiting:
			e.gather(ctx)
			e.sendWaiting(ctx, work)
		case <-ctx.Done():
		}
	}
	e.sendWaiting(ctx, work)
	if _, left := e.take(maxWaiting); len(left) > 0 {
		e.cfg.Count(Dropped, len(left))
		e.cfg.Log.Warn("the process ends before its last spans were sent", slog.Int("spans", len(left)))
	}
	return nil
}

// gather waits until there are enough spans for a request, or those that wait have waited long enough.
func (e *Exporter) gather(ctx context.Context) {
	late := time.NewTimer(gatherFor)
	defer late.Stop()
	select {
	case <-e.batchWaiting:
	case <-late.C:
	case <-ctx.Done():
	}
}

// sendWaiting sends the waiting spans, until none are left or work has ended.
func (e *Exporter) sendWaiting(ctx, work context.Context) {
	for work.Err() == nil {
		to, batch := e.take(maxBatch)
		if len(batch) == 0 {
			return
		}
		e.sendBatch(ctx, work, to, batch)
	}
}

// take removes and returns the first waiting spans, at most most of them, and their target.
func (e *Exporter) take(most int) (*target, []trace.Span) {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := min(most, len(e.waiting))
	batch := e.waiting[:n:n]
	if e.waiting = e.waiting[n:]; len(e.waiting) == 0 {
		e.waiting = nil // free the memory of the sent ones
	}
	return e.target, batch
}

// sendBatch sends spans, and tries again until the collector has accepted or refused them, too much time has passed,
// or the process ends, in which case it tries once more. It drops them when another collector is set.
func (e *Exporter) sendBatch(ctx, work context.Context, to *target, batch []trace.Span) {
	began, wait := time.Now(), firstRetry
	for {
		if to.isOver() {
			e.cfg.Count(Dropped, len(batch))
			return
		}
		last := ctx.Err() != nil
		out := e.post(work, to.Collector, batch)
		e.logChange(to, out)
		if !out.retryable {
			e.cfg.Count(Sent, len(batch)-out.refused)
			if out.refused > 0 {
				e.cfg.Count(Refused, out.refused)
			}
			return
		}
		pause := max(wait, out.retryAfter)
		if last || time.Since(began)+pause > giveUpAfter {
			e.cfg.Count(Dropped, len(batch))
			return
		}
		rest := time.NewTimer(pause)
		select {
		case <-rest.C:
		case <-ctx.Done():
			rest.Stop()
		case <-to.replaced:
			rest.Stop()
		}
		wait = min(2*wait, maxRetryWait)
	}
}

func (t *target) isOver() bool {
	select {
	case <-t.replaced:
		return true
	default:
		return false
	}
}

// logChange logs when a collector stops accepting spans, and when it accepts them again.
func (e *Exporter) logChange(to *target, out outcome) {
	switch {
	case out.problem != "" && !to.failing:
		e.cfg.Log.Warn("the collector of traces does not accept spans", slog.String("problem", out.problem), slog.Bool("tried_again", out.retryable))
	case out.problem == "" && to.failing:
		e.cfg.Log.Info("the collector of traces accepts spans again")
	}
	to.failing = out.problem != ""
}
