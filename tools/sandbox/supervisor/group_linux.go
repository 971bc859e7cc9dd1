package supervisor

import (
	"fmt"
	"os/exec"

	"parley/tools/sandbox/cgroup"
)

// A group is the control group that the command is started in; nil means that there is none.
//
// The group's limits are looser than the configured ones, and only stop a command at once if it far
// exceeds them: a group counts threads and all memory, whereas the configuration limits processes,
// and memory without mapped files. So the supervisor also measures a command that is in a group.
type group struct {
	cgroup       *cgroup.Group
	maxMemory    int64 // the configured limit in bytes; 0 means no limit, as for processes
	maxProcesses int
}

// kernelMemory is the memory that the kernel needs to run a command, besides the command's own: a
// control group counts both.
const kernelMemory = 32 << 20

// makeGroup makes the control group that a request asks for. If none can be made, it returns nil,
// and only the supervisor's measurements hold the command to its limits.
func makeGroup(r *Request) *group {
	if !r.Groups.IsUsable() {
		return nil
	}
	limits := cgroup.Limits{Tasks: r.Processes * threadsPerProcess}
	if r.Memory > 0 {
		limits.Memory = r.Memory + 2*r.Tmp + kernelMemory // temporary files are in memory, in two folders
	}
	made, err := r.Groups.Make(limits)
	if err != nil {
		return nil
	}
	return &group{cgroup: made, maxMemory: r.Memory, maxProcesses: r.Processes}
}

// start starts the command's first process, in the group if there is one.
func (g *group) start(cmd *exec.Cmd) error {
	if g == nil {
		return cmd.Start()
	}
	return g.cgroup.Start(cmd)
}

// kill kills all processes of the group, if there is one.
func (g *group) kill() {
	if g != nil {
		g.cgroup.Kill()
	}
}

// exceeded returns, as a Reason and in words, which limit of its control group the command has reached; both are "" if
// none, or if there is no group.
func (g *group) exceeded() (Reason, string) {
	if g == nil {
		return "", ""
	}
	tasks, memory := g.cgroup.Refused()
	switch {
	case memory:
		return Memory, fmt.Sprintf("it took more memory than the %d MB that are allowed", g.maxMemory>>20)
	case tasks:
		return Processes, fmt.Sprintf("it wanted more processes and threads than there may be of %d processes", g.maxProcesses)
	}
	return "", ""
}

// remove removes the group, whose processes have ended. If that fails, it is removed when the next
// command starts.
func (g *group) remove() {
	if g != nil {
		_ = g.cgroup.Remove()
	}
}
