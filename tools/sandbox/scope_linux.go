package sandbox

import (
	"errors"
	"os"

	landlocksys "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// A scope is a domain of Landlock around one thread of the supervisor and all that
// it starts, from which no signal gets out: a signal to all processes reaches those
// of the command and no others. Without it a command that makes processes faster
// than they are found could not be ended.
type scope struct {
	thread int // the only one that is inside; 0 is none
}

// enter puts this thread, which the caller has locked, into a scope of its own. It
// is proven by the process that has started this one, which a signal must not reach.
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
	// Signal 0 asks for permission alone. Without the scope it is given: the parent
	// is the same user's.
	if err := unix.Kill(os.Getppid(), 0); !errors.Is(err, unix.EPERM) {
		return errors.New("the kernel does not keep signals inside")
	}
	s.thread = unix.Gettid()
	return nil
}

// proven tells whether this very thread is inside.
func (s *scope) proven() bool { return s.thread != 0 && s.thread == unix.Gettid() }
