package server

import (
	"fmt"
	"strings"

	"parley/cmd/parley/config"
)

// A Role is what the process is for that has the home. It is told to others who
// would join, and by status.
type Role string

// The roles of serve. One process has both, unless a fleet parts them.
const (
	Both    Role = "all"
	Gateway Role = "gateway" // holds platform connections, dispatches, serves HTTP
	Worker  Role = "worker"  // leases sessions and runs turns
)

// The roles of a command that serves the home itself for as long as it runs.
const (
	Terminal Role = "terminal" // answers and sends
	Sender   Role = "sender"   // sends
	Reader   Role = "reader"   // looks
)

// ParseRole reads the roles of serve: gateway, worker, or both with a comma between.
func ParseRole(list string) (Role, error) {
	var role Role
	for name := range strings.SplitSeq(list, ",") {
		next := Role(strings.TrimSpace(name))
		switch {
		case next != Gateway && next != Worker:
			return "", fmt.Errorf("--role %s: want gateway, worker or both, with a comma between", list)
		case role == "" || role == next:
			role = next
		default:
			role = Both
		}
	}
	return role, nil
}

// Check says what keeps a process of this role from serving. A gateway needs no
// model; and of a home, which is one process's, nobody else does the rest.
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

// Receives tells whether this role holds the connections on which people speak.
func (r Role) Receives() bool { return r == Both || r == Gateway }

// Works tells whether this role answers.
func (r Role) Works() bool { return r == Both || r == Worker || r == Terminal }

// Dispatches tells whether this role sends what is said.
func (r Role) Dispatches() bool { return r.Receives() || r == Terminal || r == Sender }

// Serves tells whether this role is one of serve and no command's own. One that
// only another release knows is.
func (r Role) Serves() bool {
	switch r {
	case Terminal, Sender, Reader:
		return false
	}
	return true
}

// Suffices tells whether a process of this role does what a command of the role
// wanted needs of the home.
func (r Role) Suffices(wanted Role) bool {
	switch r {
	case Reader:
		return wanted == Reader
	case Sender:
		return wanted != Terminal
	}
	return true
}
