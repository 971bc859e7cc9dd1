package supervisor

import (
	"errors"
	"os"
	"time"

	landlocksys "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// A scope is a Landlock domain around one thread of the supervisor and everything that the thread
// starts. No signal gets out of it, so a signal to all processes, sent from that thread, reaches
// only those of the command. Without a scope, a command that makes processes faster than the
// supervisor finds them could not be ended.
type scope struct {
	thread int // the only thread that is inside; 0 means none
}

// enter puts this thread, which the caller has locked, into a scope of its own. It checks that the
// scope works: a signal from the thread must not reach this process's parent.
func (s *scope) enter() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	// Every domain that doesn't allow it refuses to move files between folders.
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
	// Signal 0 only checks for permission. Without the scope the permission is granted, because the
	// parent has the same user.
	if err := unix.Kill(os.Getppid(), 0); !errors.Is(err, unix.EPERM) {
		return errors.New("the kernel does not keep signals inside")
	}
	s.thread = unix.Gettid()
	return nil
}

// isInside reports whether the calling thread is the one that has entered the scope.
func (s *scope) isInside() bool { return s.thread != 0 && s.thread == unix.Gettid() }

const (
	// measureEvery is how often a command's memory and processes are measured.
	measureEvery = 100 * time.Millisecond
	// idleMeasureEvery is how often to measure a command in a control group that does nothing most
	// of the time.
	idleMeasureEvery = time.Second
)

// inspectInterval returns how long to wait between two measurements of this command.
func (s *supervisor) inspectInterval() time.Duration {
	if s.MostlyIdle && s.group != nil {
		return idleMeasureEvery
	}
	return measureEvery
}
