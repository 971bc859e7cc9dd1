package tools

// A Task is what a call hands to a sub-agent, which is another agent, or the same one in a session
// of its own.
type Task struct {
	Agent  string // the name of the agent to work on it; "" means the calling agent, or one that can do what Needs says
	Needs  []string
	Prompt string // what is to be done
	Files  []string
}

// A TaskTool is a tool that hands tasks to sub-agents. Its calls do not run: the turn waits
// until the sub-agent has ended, and the result is its report.
type TaskTool interface {
	// TaskOf returns the task that a call hands out. It returns false if the call hands out nothing and should run.
	// The error tells the model why the arguments don't describe a task.
	TaskOf(call Call) (task Task, given bool, err error)
}

// TaskOf returns the task that a call of a tool hands to a sub-agent; false if it hands out nothing.
func TaskOf(t Tool, call Call) (task Task, given bool, err error) {
	if a, ok := t.(TaskTool); ok {
		return a.TaskOf(call)
	}
	return Task{}, false, nil
}

// GivesTask is an option that makes a tool a TaskTool: task makes the task from the call's
// arguments.
func GivesTask[Args any](task func(args Args) (Task, error)) Option[Args] {
	return func(f *function[Args]) { f.task = task }
}

func (f *function[Args]) TaskOf(call Call) (Task, bool, error) {
	if f.task == nil {
		return Task{}, false, nil
	}
	args, err := f.decode(call.Args)
	if err != nil {
		return Task{}, true, err
	}
	d, err := f.task(args)
	return d, true, err
}
