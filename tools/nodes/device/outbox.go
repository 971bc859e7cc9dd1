package device

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"parley/tools/nodes"
	"parley/tools/nodes/wire"
)

// An outbox holds the frames that are to be sent over the link. Adding to it never waits.
type outbox struct {
	journal *journal
	log     *slog.Logger
	wake    chan struct{} // has an element if there may be something new

	mu         sync.Mutex
	results    []string                 // calls whose outcomes are to be sent, in order
	unrecorded map[string]nodes.Outcome // outcomes that could not be written to the journal
	progress   map[string]string        // the latest report of each running call
}

func newOutbox(j *journal, log *slog.Logger) *outbox {
	return &outbox{journal: j, log: log, wake: make(chan struct{}, 1), unrecorded: map[string]nodes.Outcome{}, progress: map[string]string{}}
}

// queueUnacknowledged is called when a link begins: it queues all outcomes in the journal that the server has not
// acknowledged. The server asks again for those that the journal doesn't have.
func (o *outbox) queueUnacknowledged() {
	o.mu.Lock()
	o.results = o.journal.unacknowledged() // with the lock held, so that no outcome that is recorded just now is missed
	clear(o.unrecorded)
	o.mu.Unlock()
	o.notify()
}

// result queues the outcome of a call that is in the journal.
func (o *outbox) result(id string) {
	o.mu.Lock()
	delete(o.progress, id)
	if !slices.Contains(o.results, id) {
		o.results = append(o.results, id)
	}
	o.mu.Unlock()
	o.notify()
}

// sendUnrecorded queues an outcome that is not in the journal. It is sent once.
func (o *outbox) sendUnrecorded(id string, out nodes.Outcome) {
	o.mu.Lock()
	o.unrecorded[id] = out
	o.mu.Unlock()
	o.result(id)
}

// report queues a progress report, which replaces an earlier one of the same call.
func (o *outbox) report(id, text string) {
	o.mu.Lock()
	o.progress[id] = text
	o.mu.Unlock()
	o.notify()
}

// dropReport removes a call's queued report.
func (o *outbox) dropReport(id string) {
	o.mu.Lock()
	delete(o.progress, id)
	o.mu.Unlock()
}

func (o *outbox) notify() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// send sends the frames in the outbox until ctx or the link ends. It sends reports at most once in every.
func (o *outbox) send(ctx context.Context, conn *wire.Conn, every time.Duration) error {
	reports := time.NewTimer(0)
	defer reports.Stop()
	due := false
	for {
		if err := o.sendResults(conn); err != nil {
			return err
		}
		if due {
			sent, err := o.sendReports(conn)
			if err != nil {
				return err
			}
			if sent {
				due = false
				reports.Reset(every)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-o.wake:
		case <-reports.C:
			due = true
		}
	}
}

// sendResults sends all outcomes.
func (o *outbox) sendResults(conn *wire.Conn) error {
	for {
		id, out, ok := o.next()
		switch {
		case id == "":
			return nil
		case !ok:
			continue
		}
		err := conn.Write(wire.Frame{Type: wire.Result, ID: id, Outcome: &out})
		if errors.Is(err, wire.ErrTooLarge) { // outcomes are cut, so this is an error of this program
			o.log.Error("an outcome cannot be sent", slog.String("call", id), slog.Any("error", err))
			continue
		}
		if err != nil {
			return fmt.Errorf("send a result: %w", err)
		}
	}
}

// next takes the next outcome; the id is "" if there is none. It returns false if the outcome need not, or cannot, be
// sent.
func (o *outbox) next() (id string, out nodes.Outcome, ok bool) {
	o.mu.Lock()
	if len(o.results) == 0 {
		o.mu.Unlock()
		return "", out, false
	}
	id = o.results[0]
	o.results = o.results[1:]
	out, ok = o.unrecorded[id]
	delete(o.unrecorded, id)
	o.mu.Unlock()
	if ok {
		return id, out, true
	}
	out, ok, err := o.journal.outcome(id)
	if err != nil {
		o.log.Error("an outcome cannot be read, so the server does not get it", slog.String("call", id), slog.Any("error", err))
	}
	return id, out, ok
}

// sendReports sends the latest report of each call, and reports whether there was any.
func (o *outbox) sendReports(conn *wire.Conn) (sent bool, err error) {
	o.mu.Lock()
	reports := o.progress
	o.progress = map[string]string{}
	o.mu.Unlock()
	for id, text := range reports {
		if err := conn.Write(wire.Frame{Type: wire.Progress, ID: id, Text: text}); err != nil {
			return true, fmt.Errorf("send a report: %w", err)
		}
	}
	return len(reports) > 0, nil
}
