package sqlbook

import (
	"sync"
	"time"
)

// maxDoubts is the maximum number of sends that uncertainSends remembers.
const maxDoubts = 100_000

// uncertainSends remembers the sends for which Begin failed in this process although it may have committed, each
// with the time of its first Begin.
type uncertainSends struct {
	mu          sync.Mutex
	firstBegins map[string]time.Time
}

// firstBeginTime returns the time of a send's first Begin if it's unknown whether that Begin
// committed; otherwise it returns now. Repeating Begin with the same time lets it recognize its
// own record.
func (d *uncertainSends) firstBeginTime(id string, now time.Time) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at, ok := d.firstBegins[id]; ok {
		return at
	}
	return now
}

// recordOutcome records the outcome of a Begin, and reports whether the outcome of an earlier one was unknown.
func (d *uncertainSends) recordOutcome(id string, at time.Time, err error) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, doubted := d.firstBegins[id]
	switch {
	case err == nil:
		delete(d.firstBegins, id)
	case len(d.firstBegins) < maxDoubts:
		if d.firstBegins == nil {
			d.firstBegins = map[string]time.Time{}
		}
		d.firstBegins[id] = at
	}
	return doubted
}
