package api

import "time"

// A Fleet is all processes that have the bus open.
type Fleet struct {
	Shards    int            `json:"shards"` // number of the bus's shards
	Processes []FleetProcess `json:"processes"`
}

// A FleetProcess is a process of a fleet: a server, or a command that serves itself. Of a process of an older release, only
// the name and the sessions are known.
type FleetProcess struct {
	Name     string     `json:"name"` // a new name at each start
	Role     string     `json:"role,omitempty"`
	Release  string     `json:"release,omitempty"`
	Host     string     `json:"host,omitempty"`
	Started  *time.Time `json:"started,omitempty"`
	Sessions int        `json:"sessions"`        // number of sessions that it is working on
	Holds    []string   `json:"holds,omitempty"` // names of duties that only one process of the fleet has at a time
}

// with adds to each process how many sessions it is working on.
func (f *Fleet) with(sessions map[string]int) *Fleet {
	for i := range f.Processes {
		f.Processes[i].Sessions = sessions[f.Processes[i].Name]
	}
	return f
}
