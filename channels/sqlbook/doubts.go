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
	mu sync.Mutex
	at map[string]time.Time
}

// beginTime returns the time of a send's first Begin if it's unknown whether that Begin
// committed; otherwise it returns now. Repeating Begin with the same time lets it recognize its
// own record.
func (d *uncertainSends) beginTime(id string, now time.Time) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at, ok := d.at[id]; ok {
		return at
	}
	return now
}

// recordOutcome records the outcome of a Begin, and reports whether the outcome of an earlier one was unknown.
func (d *uncertainSends) recordOutcome(id string, at time.Time, err error) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, doubted := d.at[id]
	switch {
	case err == nil:
		delete(d.at, id)
	case len(d.at) < maxDoubts:
		if d.at == nil {
			d.at = map[string]time.Time{}
		}
		d.at[id] = at
	}
	return doubted
}
