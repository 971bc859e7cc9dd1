package bus

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrBusy says that as many leases work for a group as may do so at once.
var ErrBusy = errors.New("as many leases as allowed work for the group")

// A QuotaError says that as many things have begun for a group within an hour as may.
type QuotaError struct {
	// Opens is after how long another may begin.
	Opens time.Duration
}

// Error says when another may begin.
func (e *QuotaError) Error() string {
	return fmt.Sprintf("enough has begun for the group within the hour; the next may in %v", e.Opens)
}

// A Quota bounds what is done for one group, such as the turns of one person.
type Quota struct {
	Group  string // for whom it is done; at least one byte
	ID     string // what begins: the same id is counted once
	AtOnce int    // how many leases may work for the group at a time
	Hour   int    // how many ids may begin within any hour
}

// A QuotaLease is a Lease of a bus that several processes share, and which counts what they
// do for a group. It is optional: where one process has the bus, it can count by itself.
type QuotaLease interface {
	Lease

	// Begin counts the lease as one that works for q.Group, until the lease ends or Begin,
	// Resume or Leave is called again, and counts q.ID among what has begun. It returns
	// ErrBusy if q.AtOnce other leases work for the group, and *QuotaError if q.Hour other
	// ids have begun within the hour; nothing is counted then. A lease that its process has
	// lost is counted no more. It returns ErrFenced if this lease is lost.
	Begin(ctx context.Context, q Quota) error

	// Resume counts the lease as Begin does, whatever the bounds say, and no id.
	Resume(ctx context.Context, group string) error

	// Leave counts the lease for no group. It does nothing if no group is counted.
	Leave(ctx context.Context) error
}
