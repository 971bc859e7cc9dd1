package home

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"parley/tools/plainjson"
)

// A Process has the bus open: a server of the fleet, or a command that serves itself. Of a process that has not
// described itself, such as one of an older release, only the name is known.
type Process struct {
	Name    string    `json:"-"` // its name in the bus's roster
	Role    string    `json:"role"`
	Release string    `json:"release"`
	Host    string    `json:"host"`
	Started time.Time `json:"started"`
	Holds   []string  `json:"holds,omitempty"` // names of duties that only one process of the fleet has at a time
}

const (
	// checkEvery is how often a process checks whether the names that it holds have changed. The check only reads
	// memory.
	checkEvery = time.Second
	// describeEvery is how often a process describes itself although nothing has changed, because a very old record is
	// deleted.
	describeEvery = 24 * time.Hour
	// describeAgainAfter is how long a process waits before it tries again to describe itself.
	describeAgainAfter = 10 * time.Second
)

// Describe records in the book of a home what this process is, and again when it holds other names, until ctx is done.
func Describe(ctx context.Context, h *Home, is Process, log *slog.Logger) {
	if h.self == "" {
		return // this process may only read, so it can't describe itself
	}
	var recorded []string
	var next time.Time // when to describe it again even without a change
	checks := time.NewTicker(checkEvery)
	defer checks.Stop()
	for {
		is.Holds = lastingHolds(h.Bus.Held())
		if now := time.Now(); !now.Before(next) || !slices.Equal(is.Holds, recorded) {
			recorded, next = is.Holds, now.Add(describeEvery)
			if err := describe(ctx, h, is); err != nil {
				log.Debug("this process could not record what it is", slog.Any("error", err))
				next = now.Add(describeAgainAfter)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-checks.C:
		}
	}
}

func describe(ctx context.Context, h *Home, is Process) error {
	about, err := plainjson.Marshal(is)
	if err != nil {
		return fmt.Errorf("describe this process: %w", err)
	}
	return h.Book.DescribeProcess(ctx, h.self, string(about))
}

// lastingHolds leaves out the names that are held for one job, request or sign-in.
func lastingHolds(names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool {
		what, _, _ := strings.Cut(name, "/")
		return what == "job" || what == "forget" || what == "mcp"
	})
}

// Processes returns the processes that have the bus of a home open: this one first, then the others by start time,
// and at last those of which only the name is known.
func Processes(ctx context.Context, h *Home) ([]Process, error) {
	names, err := h.Bus.Processes(ctx)
	if err != nil {
		return nil, err
	}
	about, err := h.Book.Descriptions(ctx, names)
	if err != nil {
		return nil, err
	}
	all := make([]Process, len(names))
	for i, name := range names {
		if json.Unmarshal([]byte(about[name]), &all[i]) != nil {
			all[i] = Process{}
		}
		all[i].Name = name
	}
	unknown := func(p Process) int {
		if p.Started.IsZero() {
			return 1
		}
		return 0
	}
	slices.SortFunc(all[1:], func(a, b Process) int {
		return cmp.Or(cmp.Compare(unknown(a), unknown(b)), a.Started.Compare(b.Started), cmp.Compare(a.Name, b.Name))
	})
	return all, nil
}
