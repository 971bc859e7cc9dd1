package server

import (
	"fmt"
	"strings"

	"parley/cmd/parley/config"
)

// A Role says what a process that has opened the home does. The command status shows the role, and
// a process that wants to open the same home is told which role has it open.
type Role string

// These are the roles of serve. One process has both, unless a fleet divides them.
const (
	Both    Role = "all"
	Gateway Role = "gateway" // holds platform connections, dispatches, serves HTTP
	Worker  Role = "worker"  // leases sessions and runs turns
)

// These are the roles of a command that itself serves the home while it runs.
const (
	Terminal Role = "terminal" // answers and sends
	Sender   Role = "sender"   // sends messages
	Reader   Role = "reader"   // only reads
)

// ParseRole parses the value of serve's --role: gateway, worker, or both separated by a comma.
func ParseRole(list string) (Role, error) {
	var role Role
	for name := range strings.SplitSeq(list, ",") {
		next := Role(strings.TrimSpace(name))
		switch {
		case next != Gateway && next != Worker:
			return "", fmt.Errorf("--role %s: write gateway, worker, or both with a comma in between", list)
		case role == "" || role == next:
			role = next
		default:
			role = Both
		}
	}
	return role, nil
}

// Check returns why a process with this role cannot serve with these settings, or nil. A gateway
// needs no model. A home on disk belongs to one process, so a single role needs a shared bus.
func (r Role) Check(cfg *config.Config) error {
	switch {
	case r == Both:
		return cfg.CheckServe()
	case cfg.Bus.URL == "":
		return &config.SettingError{Key: "bus.url", Remedy: "not set, so no other process can do what --role leaves out: set [bus] url and [store] url, or leave --role out"}
	case r == Gateway:
		return cfg.CheckGateway()
	}
	return cfg.CheckServe()
}

// Receives reports whether this role holds the platform connections through which people speak.
func (r Role) Receives() bool { return r == Both || r == Gateway }

// Works reports whether this role runs turns.
func (r Role) Works() bool { return r == Both || r == Worker || r == Terminal }

// Dispatches reports whether this role sends messages.
func (r Role) Dispatches() bool { return r.Receives() || r == Terminal || r == Sender }

// Serves reports whether this role is one of serve's, rather than a single command's. A role that
// only another release knows counts as one of serve's.
func (r Role) Serves() bool {
	switch r {
	case Terminal, Sender, Reader:
		return false
	}
	return true
}

// Suffices reports whether a process with this role can serve a command that would otherwise take
// the role wanted itself.
func (r Role) Suffices(wanted Role) bool {
	switch r {
	case Reader:
		return wanted == Reader
	case Sender:
		return wanted != Terminal
	}
	return true
}
