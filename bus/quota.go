package bus

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrBusy says that the group has reached its limit of leases: for example, a person has the
// maximum number of turns running.
var ErrBusy = errors.New("as many leases as allowed work for the group")

// A QuotaError says that a group has reached its hourly limit of turns, or of other counted
// work.
type QuotaError struct {
	// Opens is the wait until another may begin.
	Opens time.Duration
}

// Error returns a text that says when another may begin.
func (e *QuotaError) Error() string {
	return fmt.Sprintf("enough has begun for the group within the hour; the next may in %v", e.Opens)
}

// A Quota bounds the work that is done for one group, such as the turns of one person.
type Quota struct {
	Group  string // for whom the work is done; at least one byte
	ID     string // the id of the work that begins, such as a turn's; the same id is counted once
	AtOnce int    // how many leases may work for the group at a time
	Hour   int    // how many ids may begin within any hour
}

// A CountedLease is a Lease that also counts the work for a group, over all processes that share the
// bus. It is optional: if one process has the bus to itself, that process can count.
type CountedLease interface {
	Lease

	// Begin counts the lease as one that works for q.Group, until the lease ends or Begin, Resume
	// or Leave is called again, and counts q.ID as begun. It returns ErrBusy if
	// q.AtOnce other leases work for the group, and *QuotaError if q.Hour other ids have begun
	// within the hour; nothing is counted then. A lease that another process has lost is not
	// counted. It returns ErrFenced if this lease is lost.
	Begin(ctx context.Context, q Quota) error

	// Resume counts the lease for the group like Begin, but ignores the bounds and counts no id:
	// the work had begun before.
	Resume(ctx context.Context, group string) error

	// Leave stops counting this lease for its group. It does nothing if the lease is not counted.
	Leave(ctx context.Context) error
}
