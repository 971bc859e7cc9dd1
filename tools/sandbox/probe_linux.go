package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"parley/tools/sandbox/cgroup"
	"parley/tools/sandbox/supervisor"
)

// probeTimeout is how long testing a mode may take.
const probeTimeout = 20 * time.Second

// Open returns a Box with the configured mode, after it has run a command to check that the mode
// works. For Auto it tries the modes in turn; if none works, the error is an *AbsentError. If the
// configured mode doesn't work, or the one that works cannot do what a setting promises, it is a
// *SettingError.
func Open(ctx context.Context, cfg Config) (*Box, error) {
	if os.Getenv(supervisorEnv) != "" {
		// A program that doesn't call Main would keep starting itself.
		return nil, errors.New("this program runs as its own supervisor and does not know it: call Main first")
	}
	var sweeping sync.WaitGroup // old files are removed during the test of the mode, which takes longer
	sweeping.Go(supervisor.Sweep)
	defer sweeping.Wait()
	b := &Box{cfg: cfg, mode: cfg.Mode}
	var err error
	if b.groups, err = cgroup.Find(); err != nil {
		cfg.Log.Debug("commands run without control groups", slog.Any("error", err))
	}
	if cfg.Mode == None && !cfg.Network.Full {
		return nil, &SettingError{"sandbox.network", `mode = "none" isolates nothing, so it can't keep a command from the network`,
			`set network = "full" if you mean that, or set another mode`}
	}
	if cfg.Mode != Auto {
		return b, b.tryOnly(ctx)
	}
	if err := supervisor.CheckRights(b.supervisorProgram()); err != nil {
		return nil, &AbsentError{[]Attempt{{Bubblewrap, err, remedyRoot}}}
	}
	var tried []Attempt
	for _, mode := range []Mode{Bubblewrap, Landlock} {
		b.mode = mode
		failed := b.tryMode(ctx)
		if failed == nil {
			b.failedModes = tried
			return b, b.checkEnforceable()
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		tried = append(tried, *failed)
	}
	return nil, &AbsentError{tried}
}

// tryOnly tries only the configured mode. It returns a *SettingError if that doesn't work.
func (b *Box) tryOnly(ctx context.Context) error {
	if err := supervisor.CheckRights(b.supervisorProgram()); err != nil {
		return &SettingError{"sandbox.mode", fmt.Sprintf("%q doesn't work here: %v", b.mode, err), remedyRoot}
	}
	if failed := b.tryMode(ctx); failed != nil {
		return &SettingError{"sandbox.mode", fmt.Sprintf("%q doesn't work here: %v", b.mode, failed.Err), failed.Remedy}
	}
	return b.checkEnforceable()
}

// checkEnforceable returns an error if the configuration asks for something that the mode
// cannot enforce.
func (b *Box) checkEnforceable() error {
	if b.mode != Landlock || !b.cfg.Network.Full && len(b.cfg.Network.Hosts) == 0 {
		return nil
	}
	return &SettingError{"sandbox.network", "only bubblewrap can give a command a part of the network, and commands run with Landlock here",
		`set network = "none", or make bubblewrap work: parley doctor says what's missing`}
}

const (
	remedyBubblewrap = "install bubblewrap 0.8 or newer (apt install bubblewrap) and let this user make user namespaces; in a container, that needs a seccomp profile that allows them"
	remedyRoot       = "run parley as an ordinary user, or let root become other users (CAP_SETUID, CAP_SETGID, CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_KILL) and let everybody run the program"
	remedyReach      = "run parley as an ordinary user, or choose a [workspace] root that all users can reach (chmod o+x the folders above it); with CAP_SYS_ADMIN, root can show commands the contents of its own folders"
	remedyLandlock   = "use Linux 6.12 or newer with Landlock enabled (lsm=landlock,… at boot)"
)

// tryMode runs a command in the box's mode, to check that it is separated from the rest of the machine.
// It returns nil if so, and otherwise what went wrong.
func (b *Box) tryMode(ctx context.Context) *Attempt {
	remedy := ""
	switch b.mode {
	case Bubblewrap:
		remedy = remedyBubblewrap
		path, err := exec.LookPath("bwrap")
		if err != nil {
			return &Attempt{b.mode, errors.New("the program bwrap is not installed"), remedy}
		}
		if b.bwrap, err = filepath.Abs(path); err != nil {
			return &Attempt{b.mode, err, remedy}
		}
	case Landlock:
		remedy = remedyLandlock
		abi, err := supervisor.LandlockVersion()
		if err != nil {
			return &Attempt{b.mode, fmt.Errorf("the kernel has no Landlock, or does not use it: %w", err), remedy}
		}
		if abi < supervisor.MinABI {
			return &Attempt{b.mode, fmt.Errorf("the kernel's Landlock is version %d, and %d is needed", abi, supervisor.MinABI), remedy}
		}
	}
	err := b.probe(ctx)
	switch {
	case err == nil:
		return nil
	case b.mode == None && os.Geteuid() != 0:
		return nil // nothing can fail without isolation, and each command reports its own errors
	case errors.Is(err, ErrUnreachable):
		remedy = remedyReach
	case b.mode == None:
		remedy = remedyRoot
	}
	return &Attempt{b.mode, err, remedy}
}

// probe runs a command in the box's mode. If that fails with control groups, it tries again
// without; if that works, the box uses no control groups from then on.
func (b *Box) probe(ctx context.Context) error {
	err := b.probeOnce(ctx)
	if err != nil && b.groups.IsUsable() {
		b.groups = cgroup.Place{}
		err = b.probeOnce(ctx)
	}
	return err
}

// Exit codes of the command that tests the isolation, if it could do something that it must not.
const (
	exitCouldRead  = 3
	exitCouldWrite = 4
	exitCouldRaise = 5
)

// isolationTest is the shell command that tests the isolation. It opens files of the kernel for writing, but writes
// nothing to them.
const isolationTest = `for file in /proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe /proc/sys/vm/drop_caches /proc/sysrq-trigger \
	/proc/irq/default_smp_affinity /sys/kernel/uevent_helper /sys/power/state /sys/kernel/mm/*/enabled; do
	true 2>/dev/null >>"$file" && exit 4
done
true >written
chmod u+s written 2>/dev/null && exit 5
read -r seen <"$1" && exit 3
exit 0`

// probeOnce runs a command that looks for a file outside the workspace, tries to open for writing
// the files through which root controls the machine, and writes a file inside the workspace. It
// returns an error if the command could do what it must not, or could not do what it should.
func (b *Box) probeOnce(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	tmp, err := supervisor.NewTemporary(-1, -1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tmp.Remove()) }()
	workspace, outside := filepath.Join(tmp.Path, "workspace"), filepath.Join(tmp.Path, "outside")
	if err := errors.Join(os.Mkdir(workspace, 0o700), os.WriteFile(outside, []byte("seen\n"), 0o600)); err != nil {
		return err
	}
	if err := b.admitCommandUser(tmp.Path, outside); err != nil {
		return err
	}
	req, err := b.newRequest(ctx, Command{
		Args: []string{"sh", "-c", isolationTest, "sh", outside}, Workspace: workspace, Network: b.mode == None,
	})
	if err != nil {
		return err
	}
	var stdout, stderr bytes.Buffer
	rep, err := b.runSupervised(ctx, req, nil, &stdout, &stderr)
	said := strings.TrimSpace(stderr.String())
	switch {
	case err != nil && said != "":
		return errors.New(said)
	case err != nil:
		return err
	case b.groups.IsUsable() && !rep.Grouped:
		return errors.New("it was not run in a control group")
	case rep.ExitCode == exitCouldWrite:
		return errors.New("a file of the kernel's, through which root rules the machine, could be opened for writing")
	case rep.ExitCode == exitCouldRaise:
		return errors.New("a file could be made that others run with its owner's rights")
	case rep.ExitCode == exitCouldRead && b.mode != None:
		return errors.New("a file outside could be read")
	case rep.ExitCode != 0 && rep.ExitCode != exitCouldRead || rep.Killed != "":
		return fmt.Errorf("a command that should work ended with %d: %s%s", rep.ExitCode, rep.Detail, said)
	}
	return checkWritten(filepath.Join(workspace, "written"))
}

// admitCommandUser prepares the folder of a probe whose command runs as another user. Without isolation, that user
// could read the file outside. The folder is accessible to root alone if the commands' workspaces are in such a folder,
// too.
func (b *Box) admitCommandUser(folder, outside string) error {
	uid, gid := commandUser(nil)
	if uid < 0 {
		return nil
	}
	if err := os.Chown(outside, uid, gid); err != nil {
		return err
	}
	for _, dir := range b.cfg.Workspaces {
		of, _ := os.Stat(dir) // nil if it does not exist yet
		uid, gid := commandUser(of)
		if direct, err := filepath.EvalSymlinks(dir); err == nil {
			dir = direct
		}
		if supervisor.BlockedBy(dir, uid, gid) != "" {
			return nil
		}
	}
	return os.Chmod(folder, 0o711)
}

// checkWritten returns an error unless the probe has written its file, and not as root.
func checkWritten(file string) error {
	info, err := os.Lstat(file)
	if err != nil {
		return errors.New("a file in the workspace could not be written")
	}
	if of, ok := info.Sys().(*syscall.Stat_t); ok && of.Uid == 0 {
		return errors.New("a command ran as root")
	}
	return nil
}
