package sandbox

// A Place is where a session's commands run: what is the same for all of them.
type Place struct {
	Workspace string
	Dir       string // below it
	Quota     Quota
	Network   bool // whether whom they run for may use the network
}

// Command is a command at this place.
func (p Place) Command(args ...string) Command {
	return Command{Args: args, Workspace: p.Workspace, Dir: p.Dir, Quota: p.Quota, Network: p.Network}
}
