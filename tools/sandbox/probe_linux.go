package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	landlocksys "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// probeTime is how long a mode has to show that it works.
const probeTime = 20 * time.Second

// Open finds out by running something whether the configured mode works, and with
// Auto which does. With none it is an AbsentError; a SettingError where what works
// cannot keep what the configuration promises.
func Open(ctx context.Context, cfg Config) (*Box, error) {
	if os.Getenv(nested) != "" {
		// A program that does not call Main would start itself again without end.
		return nil, errors.New("this program runs as its own supervisor and does not know it: call Main first")
	}
	sweep()
	b := &Box{cfg: cfg, mode: cfg.Mode}
	switch cfg.Mode {
	case None:
		if !cfg.Network.Full {
			return nil, &SettingError{"sandbox.network", `mode = "none" puts up no walls, so it cannot keep a command from the network`,
				`set network = "full" to say that this is meant, or another mode`}
		}
		return b, nil
	case Bubblewrap, Landlock:
		return b, b.only(ctx)
	}
	var tried []Attempt
	for _, mode := range []Mode{Bubblewrap, Landlock} {
		b.mode = mode
		failed := b.try(ctx)
		if failed == nil {
			b.tried = tried
			return b, b.kept()
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		tried = append(tried, *failed)
	}
	return nil, &AbsentError{tried}
}

// only tries the one mode that is asked for.
func (b *Box) only(ctx context.Context) error {
	if failed := b.try(ctx); failed != nil {
		return &SettingError{"sandbox.mode", fmt.Sprintf("%q does not work here: %v", b.mode, failed.Err), failed.Remedy}
	}
	return b.kept()
}

// kept refuses what the mode cannot enforce.
func (b *Box) kept() error {
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

// try runs a command in the box's mode that shows whether the walls stand.
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
		abi, err := landlocksys.LandlockGetABIVersion()
		if err != nil {
			return &Attempt{b.mode, fmt.Errorf("the kernel has no Landlock, or does not use it: %w", err), remedyLandlock}
		}
		if abi < leastABI {
			return &Attempt{b.mode, fmt.Errorf("the kernel's Landlock is version %d, and %d is needed", abi, leastABI), remedyLandlock}
		}
		if err := b.probe(ctx); err != nil {
			return &Attempt{b.mode, err, remedyLandlock}
		}
	}
	return nil
}

// probe runs a command that looks for a file outside and writes one inside.
func (b *Box) probe(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	dir, err := os.MkdirTemp("", temporaryPrefix)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	workspace, outside := filepath.Join(dir, "workspace"), filepath.Join(dir, "outside")
	if err := errors.Join(os.Mkdir(workspace, 0o700), os.WriteFile(outside, []byte("seen"), 0o600)); err != nil {
		return err
	}
	req, err := b.request(ctx, Command{
		Args: []string{"sh", "-c", `read -r seen <"$1" && exit 3; : >written`, "sh", outside}, Workspace: workspace,
	})
	if err != nil {
		return err
	}
	var stdout, stderr bytes.Buffer
	rep, err := supervised(ctx, req, "", &stdout, &stderr)
	said := strings.TrimSpace(stderr.String())
	switch {
	case err != nil && said != "":
		return errors.New(said)
	case err != nil:
		return err
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
