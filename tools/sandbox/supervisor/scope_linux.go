package supervisor

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"

	landlocksys "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"parley/tools/sandbox/cgroup"
)

// A scope is a domain of Landlock around one thread of the supervisor and all that the thread
// starts. No signal gets out of it, so a signal to all processes, sent from that thread, reaches
// those of the command and no others. Without a scope, a command that makes processes faster than
// the supervisor finds them could not be ended.
type scope struct {
	thread int // the only thread that is inside; 0 means none
}

// enter puts this thread, which the caller has locked, into a scope of its own. It checks that
// the scope works: a signal from the thread must not reach the process that has started this one.
func (s *scope) enter() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	// Moving files between folders is refused in every domain that does not allow it.
	const move = landlocksys.AccessFSRefer
	rules, err := landlocksys.LandlockCreateRuleset(&landlocksys.RulesetAttr{HandledAccessFS: move, Scoped: landlocksys.ScopeSignal}, 0)
	if err != nil {
		return err
	}
	root, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err == nil {
		err = landlocksys.LandlockAddPathBeneathRule(rules, &landlocksys.PathBeneathAttr{AllowedAccess: move, ParentFd: root}, 0)
		err = errors.Join(err, unix.Close(root))
	}
	if err == nil {
		err = landlocksys.LandlockRestrictSelf(rules, 0)
	}
	if err = errors.Join(err, unix.Close(rules)); err != nil {
		return err
	}
	// Signal 0 only asks for permission. Without the scope the permission is given, because
	// the parent has the same user.
	if err := unix.Kill(os.Getppid(), 0); !errors.Is(err, unix.EPERM) {
		return errors.New("the kernel does not keep signals inside")
	}
	s.thread = unix.Gettid()
	return nil
}

// isInside reports whether the thread that calls it is the one that has entered the scope.
func (s *scope) isInside() bool { return s.thread != 0 && s.thread == unix.Gettid() }

// supervisorNice and commandNice are the priorities of a supervisor that runs as root and
// of its command when the machine is overloaded: the supervisor must be able to end a
// command that makes processes as fast as it can.
const supervisorNice, commandNice = -15, 5

// hasNoProcessLimit reports whether the kernel allows the command any number of
// processes: it runs as root, and in no control group.
func (s *supervisor) hasNoProcessLimit() bool {
	return os.Geteuid() == 0 && s.UID <= 0 && s.group == nil
}

const (
	// measureEvery is how often a command's memory and processes are measured. With
	// rootMeasureEvery that is done for a command that runs as root and in no control group,
	// because the kernel allows it any number of processes.
	measureEvery     = 100 * time.Millisecond
	rootMeasureEvery = 20 * time.Millisecond
	// idleMeasureEvery is how often a command in a control group is measured that does nothing
	// most of the time.
	idleMeasureEvery = time.Second
)

// inspectInterval returns how long to wait between two measurements of this command.
func (s *supervisor) inspectInterval() time.Duration {
	switch {
	case s.hasNoProcessLimit():
		return rootMeasureEvery
	case s.Waits && s.group != nil:
		return idleMeasureEvery
	}
	return measureEvery
}

// raisePriority gives the supervisor's threads a higher priority than the command that it
// starts.
func raisePriority() error {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, t := range threads {
		id, err := strconv.Atoi(t.Name())
		if err != nil {
			continue
		}
		err = unix.Setpriority(unix.PRIO_PROCESS, id, supervisorNice)
		if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
			return nil // root in a container may not do so
		}
		if err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}

// kernelMemory is what the kernel needs to run a command, besides the command's own
// memory: a control group counts both.
const kernelMemory = 32 << 20

// makeGroup makes the control group that the command is started in. Where no group can be made,
// the supervisor's own measuring alone holds the command to its limits.
//
// The group's limits are looser than the configured ones, and only stop a command at once that
// goes far beyond them: a group counts threads and all memory, but the configuration limits
// processes, and memory that they share with no others. So the supervisor also measures a command
// in a group.
func (s *supervisor) makeGroup() {
	if !s.Groups.IsUsable() {
		return
	}
	limits := cgroup.Limits{Tasks: s.Processes * tasksEach}
	if s.Memory > 0 {
		limits.Memory = s.Memory + 2*s.Tmp + kernelMemory // temporary files are in memory, in two folders
	}
	if g, err := s.Groups.Make(limits); err == nil {
		s.group = g
	}
}

// startInGroup starts the command's first process, in the group if there is one.
func (s *supervisor) startInGroup(cmd *exec.Cmd) error {
	if s.group == nil {
		return cmd.Start()
	}
	return s.group.Start(cmd)
}

// refusedByGroup returns of what the command wanted more than its control group allowed; "" if of
// nothing.
func (s *supervisor) refusedByGroup() (Reason, string) {
	if s.group == nil {
		return "", ""
	}
	tasks, memory := s.group.Refused()
	switch {
	case memory:
		return Memory, fmt.Sprintf("it took more memory than the %d MB that are allowed", s.Memory>>20)
	case tasks:
		return Processes, fmt.Sprintf("it wanted more processes and threads than there may be of %d processes", s.Processes)
	}
	return "", ""
}

// removeGroup removes the group, whose processes have ended. If that fails, the start of
// the next command removes it.
func (s *supervisor) removeGroup() {
	if s.group != nil {
		_ = s.group.Remove()
	}
}
