package erase

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/tools/plainjson"
)

// A RequestState says how far a request is.
type RequestState string

// These are the states of a request.
const (
	Running RequestState = "running" // even after its process has died, because another one continues
	Done    RequestState = "done"
	Failed  RequestState = "failed" // something may be left, so the same request may be made again
)

// A Request is an erasure that somebody has asked for. It is carried out to the end even if they don't wait for it.
type Request struct {
	ID       string       `json:"id"`
	State    RequestState `json:"state"`
	Asked    time.Time    `json:"asked"`
	Progress Progress     `json:"progress"`
	Receipt  *Receipt     `json:"receipt,omitempty"` // set once it is done
	Error    string       `json:"error,omitempty"`   // why it has failed, for people
}

// An order is what a request is to erase, as it is stored until the request has ended. It never changes.
type order struct {
	Asked   time.Time `json:"asked"`
	User    string    `json:"user,omitempty"`
	Session string    `json:"session,omitempty"`
}

// These are the subjects of the notes about a request, whose id is the object. Only the first outcome is kept, so a
// paused process whose request another one has finished changes nothing anymore.
const (
	orderSubject    = "forget order"    // an order; removed once there is an outcome
	progressSubject = "forget progress" // a Progress; there is one as soon as some process has begun
	outcomeSubject  = "forget outcome"  // a Request that has ended
)

// These are the errors of Requests.
var (
	errNoRequest = errors.New("there is no such request")
	errStopping  = errors.New("this process is being stopped")
)

const (
	keepOutcomes  = 24 * time.Hour
	beginWithin   = 24 * time.Hour // an older request isn't resumed, because it would also erase what was said since
	recordEvery   = time.Second    // how often a request's progress is recorded
	lookForOthers = time.Minute    // how often a process looks for requests that a dead one has left
	afterError    = time.Second    // the wait before a request that failed is tried again
)

// RequestsConfig holds what Requests works with.
type RequestsConfig struct {
	// Eraser returns an eraser for the current settings that reports its progress.
	Eraser func(progress func(Progress)) *Eraser
	Notes  channels.Notes
	Holder bus.Holder
	// Resumes says that this process also carries out requests that other processes have left. It is set for processes
	// that serve for long.
	Resumes bool
	Log     *slog.Logger
}

// Requests carries out requested erasures, each to its end. A request is recorded before it begins, and only the
// process that holds its name on the bus works on it. If that process dies, another one begins it again, and finds
// only what isn't erased yet.
type Requests struct {
	cfg   RequestsConfig
	ready chan struct{} // closed once Run has begun

	mu      sync.Mutex
	runCtx  context.Context          //nolint:containedctx // the context of all requests, until Run ends it and waits for them
	active  map[string]chan struct{} // by request that this process works on or waits for: a channel that is closed when it no longer does
	working sync.WaitGroup
}

// NewRequests returns Requests. They are carried out while Run is running.
func NewRequests(cfg RequestsConfig) *Requests {
	return &Requests{cfg: cfg, ready: make(chan struct{}), active: map[string]chan struct{}{}}
}

// Run carries out requests until ctx is done, and then waits until those in this process have stopped. Unfinished
// requests continue in another process, or at the next start.
func (r *Requests) Run(ctx context.Context) error {
	r.mu.Lock()
	r.runCtx = ctx
	r.mu.Unlock()
	close(r.ready)
	defer r.waitForWork()
	if !r.cfg.Resumes {
		<-ctx.Done()
		return nil
	}
	looks := time.NewTicker(lookForOthers)
	defer looks.Stop()
	for {
		if err := r.resume(ctx); err != nil && ctx.Err() == nil {
			r.cfg.Log.Warn("it cannot be read what is still to be erased", slog.Any("error", err))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-looks.C:
		}
	}
}

// waitForWork refuses further requests, and waits for those that this process works on.
func (r *Requests) waitForWork() {
	r.mu.Lock()
	r.active = nil
	r.mu.Unlock()
	r.working.Wait()
}

// resume begins requests that have not ended, and removes the records of those that ended long ago.
func (r *Requests) resume(ctx context.Context) error {
	orders, err := r.cfg.Notes.AllNoted(ctx, orderSubject)
	if err != nil {
		return err
	}
	for _, note := range orders {
		r.start(note.About)
	}
	outcomes, err := r.cfg.Notes.AllNoted(ctx, outcomeSubject)
	if err != nil {
		return err
	}
	for _, note := range outcomes {
		if time.Since(note.At) < keepOutcomes {
			continue
		}
		for _, subject := range []string{progressSubject, outcomeSubject} {
			if err := r.cfg.Notes.SetNote(ctx, subject, note.About, ""); err != nil {
				return err
			}
		}
	}
	return nil
}

// Ask records a request to erase what a person has said or, if user is "", a session, and begins it.
func (r *Requests) Ask(ctx context.Context, user, session string) (Request, error) {
	if err := r.awaitRun(ctx); err != nil {
		return Request{}, err
	}
	id, o := strings.ToLower(rand.Text()[:16]), order{time.Now().UTC(), user, session}
	if err := r.record(ctx, orderSubject, id, o); err != nil {
		return Request{}, err
	}
	r.start(id)
	return Request{ID: id, State: Running, Asked: o.Asked}, nil
}

// awaitRun waits until Run has begun.
func (r *Requests) awaitRun(ctx context.Context) error {
	select {
	case <-r.ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Find returns a request. It returns errNoRequest if there is none, or if it ended more than a day ago.
func (r *Requests) Find(ctx context.Context, id string) (Request, error) {
	var o order
	ordered, err := r.read(ctx, orderSubject, id, &o) // read before the outcome, which replaces it
	if err != nil {
		return Request{}, err
	}
	q := Request{ID: id, State: Running, Asked: o.Asked}
	ended, err := r.read(ctx, outcomeSubject, id, &q)
	switch {
	case err != nil || ended:
		return q, err
	case !ordered:
		return q, errNoRequest
	}
	_, err = r.read(ctx, progressSubject, id, &q.Progress)
	return q, err
}

// Await returns a request once it has ended. It returns errStopping if this process stops before that.
func (r *Requests) Await(ctx context.Context, id string) (Request, error) {
	if err := r.awaitRun(ctx); err != nil {
		return Request{}, err
	}
	for {
		q, err := r.Find(ctx, id)
		if err != nil || q.State != Running {
			return q, err
		}
		ended := r.start(id) // if another process works on it, this ends when that process has finished
		if ended == nil {
			return q, errStopping
		}
		select {
		case <-ended:
		case <-ctx.Done():
			return q, ctx.Err()
		}
	}
}

// record stores a note about a request.
func (r *Requests) record(ctx context.Context, subject, id string, v any) error {
	raw, err := plainjson.Marshal(v)
	if err == nil {
		err = r.cfg.Notes.SetNote(ctx, subject, id, string(raw))
	}
	if err != nil {
		return fmt.Errorf("record the %s %s: %w", subject, id, err)
	}
	return nil
}

// read reads a note about a request; false if there is none.
func (r *Requests) read(ctx context.Context, subject, id string, into any) (bool, error) {
	note, err := r.cfg.Notes.Noted(ctx, subject, id)
	if err == nil && note.Value != "" {
		err = json.Unmarshal([]byte(note.Value), into)
	}
	if err != nil {
		return false, fmt.Errorf("read the %s %s: %w", subject, id, err)
	}
	return note.Value != "", nil
}

// start works on a request in a new goroutine, unless this process already does. It returns a channel that is closed
// when this process no longer works on the request, or nil if the process is being stopped.
func (r *Requests) start(id string) (ended <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.active == nil {
		return nil
	}
	if r.active[id] != nil {
		return r.active[id]
	}
	done, base := make(chan struct{}), r.runCtx
	r.active[id] = done
	r.working.Go(func() {
		if err := r.process(base, id); err != nil && base.Err() == nil {
			r.cfg.Log.Error("a request to erase something is not carried out yet", slog.String("id", id), slog.Any("error", err))
			pause(base, afterError)
		}
		r.mu.Lock()
		delete(r.active, id)
		r.mu.Unlock()
		close(done)
	})
	return done
}

// pause waits for a time, or until ctx is done.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// process waits until no other process works on a request, and carries it out. If it returns an error, the request is
// still to be carried out.
func (r *Requests) process(ctx context.Context, id string) error {
	held, release, err := r.cfg.Holder.Hold(ctx, "forget/"+id)
	if err != nil {
		return err
	}
	defer release()
	q, err := r.Find(held, id)
	if errors.Is(err, errNoRequest) {
		return nil
	}
	if err != nil {
		return err
	}
	if q.State == Running {
		if q, err = r.carryOut(held, q); err != nil {
			return err
		}
	}
	return r.recordOutcome(held, q)
}

// carryOut erases what a request is about, and returns the request as it has ended.
func (r *Requests) carryOut(ctx context.Context, q Request) (Request, error) {
	if time.Since(q.Asked) > beginWithin {
		q.State, q.Error = Failed, textTooOld
		return q, nil
	}
	var o order
	if _, err := r.read(ctx, orderSubject, q.ID, &o); err != nil {
		return q, err
	}
	again := q.Progress.Step != ""
	if err := r.record(ctx, progressSubject, q.ID, Progress{Step: Mail}); err != nil {
		return q, err
	}
	receipt, err := r.erase(ctx, q.ID, o)
	if ctx.Err() != nil {
		return q, context.Cause(ctx)
	}
	if err != nil {
		r.cfg.Log.Error("not everything was erased", slog.String("id", q.ID), slog.Any("error", err))
		q.State, q.Error = Failed, err.Error()
		return q, nil
	}
	if again {
		receipt.noteKept("the count of what was erased before an interruption", "this receipt counts what was left after it")
	}
	q.State, q.Receipt = Done, &receipt
	return q, nil
}

// recordOutcome records the outcome of a request, unless there is one, and removes its order, which says who is erased.
func (r *Requests) recordOutcome(ctx context.Context, q Request) error {
	raw, err := plainjson.Marshal(q)
	if err != nil {
		return fmt.Errorf("encode an outcome: %w", err)
	}
	if _, err := r.cfg.Notes.SetNoteOnce(ctx, outcomeSubject, q.ID, string(raw)); err != nil {
		return fmt.Errorf("record an outcome: %w", err)
	}
	return r.cfg.Notes.SetNote(ctx, orderSubject, q.ID, "")
}

// erase erases what an order says, and records the progress from time to time.
func (r *Requests) erase(ctx context.Context, id string, o order) (Receipt, error) {
	recorded := time.Now()
	eraser := r.cfg.Eraser(func(p Progress) {
		if time.Since(recorded) < recordEvery {
			return
		}
		recorded = time.Now()
		_ = r.record(ctx, progressSubject, id, p) // if this fails, the next progress may be recorded
	})
	if o.User != "" {
		return eraser.PersonSoon(ctx, o.User)
	}
	return eraser.SessionSoon(ctx, o.Session)
}

// textTooOld is the error of a request that was interrupted too long ago.
const textTooOld = "it was interrupted more than a day ago, and would also erase what was said since"
