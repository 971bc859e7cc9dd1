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
	"time"

	"parley/tools/sandbox/cgroup"
	"parley/tools/sandbox/supervisor"
)

// probeTimeout is how long the test of a mode may take.
const probeTimeout = 20 * time.Second

// Open returns a Box of the configured mode, after it has run a command to see that the mode
// works. For Auto it tries the modes in turn. If none works the error is an *AbsentError; if the
// mode that works cannot do what a setting promises, it is a *SettingError.
func Open(ctx context.Context, cfg Config) (*Box, error) {
	if os.Getenv(supervisorEnv) != "" {
		// A program that does not call Main would start itself again without end.
		return nil, errors.New("this program runs as its own supervisor and does not know it: call Main first")
	}
	var sweeping sync.WaitGroup // beside the test of the mode, which takes longer
	sweeping.Go(supervisor.Sweep)
	defer sweeping.Wait()
	b := &Box{cfg: cfg, mode: cfg.Mode}
	var err error
	if b.groups, err = cgroup.Find(); err != nil {
		cfg.Log.Debug("commands run without control groups", slog.Any("error", err))
	}
	switch cfg.Mode {
	case None:
		if !cfg.Network.Full {
			return nil, &SettingError{"sandbox.network", `mode = "none" puts up no walls, so it cannot keep a command from the network`,
				`set network = "full" to say that this is meant, or another mode`}
		}
		if b.groups.IsUsable() && b.probe(ctx) != nil {
			b.groups = cgroup.Place{}
		}
		return b, nil
	case Bubblewrap, Landlock:
		return b, b.tryOnly(ctx)
	}
	var tried []Attempt
	for _, mode := range []Mode{Bubblewrap, Landlock} {
		b.mode = mode
		failed := b.try(ctx)
		if failed == nil {
			b.tried = tried
			return b, b.checkEnforceable()
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		tried = append(tried, *failed)
	}
	return nil, &AbsentError{tried}
}

// tryOnly tries the one mode that is configured.
func (b *Box) tryOnly(ctx context.Context) error {
	if failed := b.try(ctx); failed != nil {
		return &SettingError{"sandbox.mode", fmt.Sprintf("%q does not work here: %v", b.mode, failed.Err), failed.Remedy}
	}
	return b.checkEnforceable()
}

// checkEnforceable returns an error if the configuration asks for something that the mode
// cannot enforce.
func (b *Box) checkEnforceable() error {
	if b.mode != Landlock || !b.cfg.Network.Full && len(b.cfg.Network.Hosts) == 0 {
		return nil
	}
	return &SettingError{"sandbox.network", "only bubblewrap can give a command some of the network and keep the rest from it, and here commands run with Landlock",
		`set network = "none", or make bubblewrap work: parley doctor says what it lacks`}
}

const (
	remedyBubblewrap = "install bubblewrap 0.8 or newer (apt install bubblewrap) and let this user make user namespaces; in a container that takes a seccomp profile that allows them"
	remedyLandlock   = "use Linux 6.12 or newer with Landlock enabled (lsm=landlock,… at boot)"
)

// try runs a command in the box's mode, to see whether it is kept apart from the rest of the
// machine. It returns nil if so, and otherwise what went wrong.
func (b *Box) try(ctx context.Context) *Attempt {
	switch b.mode {
	case Bubblewrap:
		path, err := exec.LookPath("bwrap")
		if err != nil {
			return &Attempt{b.mode, errors.New("the program bwrap is not installed"), remedyBubblewrap}
		}
		if b.bwrap, err = filepath.Abs(path); err != nil {
			return &Attempt{b.mode, err, remedyBubblewrap}
		}
		if err := b.probe(ctx); err != nil {
			return &Attempt{b.mode, err, remedyBubblewrap}
		}
	case Landlock:
		abi, err := supervisor.LandlockVersion()
		if err != nil {
			return &Attempt{b.mode, fmt.Errorf("the kernel has no Landlock, or does not use it: %w", err), remedyLandlock}
		}
		if abi < supervisor.LeastABI {
			return &Attempt{b.mode, fmt.Errorf("the kernel's Landlock is version %d, and %d is needed", abi, supervisor.LeastABI), remedyLandlock}
		}
		if err := b.probe(ctx); err != nil {
			return &Attempt{b.mode, err, remedyLandlock}
		}
	}
	return nil
}

// probe runs a command in the box's mode. If that fails with control groups, it tries
// once more without; if that works, the box has no control groups from then on.
func (b *Box) probe(ctx context.Context) error {
	err := b.probeOnce(ctx)
	if err != nil && b.groups.IsUsable() {
		b.groups = cgroup.Place{}
		err = b.probeOnce(ctx)
	}
	return err
}

// probeOnce runs a command that looks for a file outside of the workspace and writes one
// inside.
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
	req, err := b.newRequest(ctx, Command{
		Args: []string{"sh", "-c", `read -r seen <"$1" && exit 3; : >written`, "sh", outside}, Workspace: workspace, Network: b.mode == None,
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
	case rep.ExitCode == 3 && b.mode == None:
		return nil // there are no walls
	case rep.ExitCode == 3:
		return errors.New("a file outside could be read")
	case rep.ExitCode != 0 || rep.Killed != "":
		return fmt.Errorf("a command that should work ended with %d: %s%s", rep.ExitCode, rep.Detail, said)
	}
	if _, err := os.Stat(filepath.Join(workspace, "written")); err != nil {
		return errors.New("a file in the workspace could not be written")
	}
	return nil
}
