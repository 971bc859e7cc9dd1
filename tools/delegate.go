package tools

// A Delegation is a task that a call hands to a sub-agent, which is another agent, or the same
// one in a session of its own.
type Delegation struct {
	Agent  string // the name of the agent to work on it; "" means the same agent as the one that calls
	Prompt string // what is to be done
	Files  []string
}

// A Delegator is a tool that hands tasks to sub-agents. Its calls do not run: the turn waits
// until the sub-agent has ended, and the result is its report.
type Delegator interface {
	// Delegate returns what a call hands out. It returns false if the call hands out nothing and is
	// to run.
	Delegate(call Call) (d Delegation, delegates bool, err error)
}

// DelegationOf returns what a call of a tool hands to a sub-agent; false if it hands out nothing.
func DelegationOf(t Tool, call Call) (d Delegation, delegates bool, err error) {
	if a, ok := t.(Delegator); ok {
		return a.Delegate(call)
	}
	return Delegation{}, false, nil
}

// Delegates is an option that makes a tool a Delegator: the function delegation makes the
// delegation from the call's arguments.
func Delegates[Args any](delegation func(args Args) (Delegation, error)) Option[Args] {
	return func(f *function[Args]) { f.delegation = delegation }
}

func (f *function[Args]) Delegate(call Call) (Delegation, bool, error) {
	if f.delegation == nil {
		return Delegation{}, false, nil
	}
	args, err := f.decode(call.Args)
	if err != nil {
		return Delegation{}, true, err
	}
	d, err := f.delegation(args)
	return d, true, err
}
