package sandbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"parley/tools/plainjson"
	"parley/tools/sandbox/egress"
	"parley/tools/sandbox/supervisor"
)

const (
	// leaseTime is how long a command may continue after its caller was last known to hold the session. It is shorter
	// than the caller's lease on the session, so that the command has ended when another process may take over the
	// session.
	leaseTime = 3 * time.Second
	// leaseEvery is the interval at which the supervisor is told that the caller is still working.
	leaseEvery = 500 * time.Millisecond
	// endTimeout is how long a supervisor may take to end what it has started.
	endTimeout = 10 * time.Second
)

// supervisorEnv is the environment variable that tells this program that it was started as a supervisor.
const supervisorEnv = "PARLEY_SANDBOX_SUPERVISOR"

// Main does the work for which the sandbox starts this program again. asked reports whether args, in the form of
// os.Args, ask for that, and code is then the exit code. Most of that work is done before the program's function
// main begins, see package supervisor.
func Main(args []string) (code int, asked bool) {
	return supervisor.Main(args, func(hosts []string) supervisor.Proxy { return proxy{egress.New(hosts)} })
}

// A proxy adapts an egress.Proxy to supervisor.Proxy.
type proxy struct{ *egress.Proxy }

// Serve implements supervisor.Proxy; it serves connections to a listening socket.
func (p proxy) Serve(listening *os.File) error {
	l, err := net.FileListener(listening)
	if err = errors.Join(err, listening.Close()); err != nil { // l uses a duplicate
		return err
	}
	return p.Proxy.Serve(l)
}

// Run implements Sandbox; it runs the command under a supervisor of its own.
func (b *Box) Run(ctx context.Context, c Command) (Result, error) {
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return Result{}, err
	}
	if len(c.Args) == 0 && !c.OwnProgram {
		return Result{}, errors.New("there is no program to run")
	}
	req, err := b.newRequest(ctx, c)
	if err != nil {
		return Result{}, err
	}
	var both sync.Mutex
	half := cmp.Or(c.MaxOutput, MaxOutput) / 2
	stdout, stderr := &output{shared: &both, onWrite: c.Output, half: half}, &output{shared: &both, onWrite: c.Output, half: half}
	var out io.Writer = stdout
	if c.Stdout != nil {
		out = c.Stdout
	}
	rep, err := b.runSupervised(ctx, req, c.Stdin, out, stderr)
	if err != nil {
		b.groups.Sweep() // the supervisor may have been killed
		supervisor.Sweep()
		return Result{}, fmt.Errorf("run a command in the sandbox: %w", err)
	}
	if rep.Killed == Cancelled && errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		rep.Killed, rep.Detail = Timeout, "its time was over" // the supervisor and this process saw the deadline at the same moment
	}
	if rep.Killed != "" {
		b.cfg.Log.Info("a command was ended", slog.String("reason", string(rep.Killed)))
		if b.cfg.OnKill != nil {
			b.cfg.OnKill(rep.Killed)
		}
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.DeadlineExceeded) {
		return Result{}, cause
	}
	return Result{
		ExitCode: rep.ExitCode, Stdout: stdout.text(), Stderr: stderr.text(), Duration: rep.Duration,
		Killed: rep.Killed, Detail: rep.Detail, Refused: rep.Refused,
	}, nil
}

// newRequest returns the supervisor's request for a command.
func (b *Box) newRequest(ctx context.Context, c Command) (supervisor.Request, error) {
	now := supervisor.Clock()
	lease := leaseTime
	if !c.HeldAt.IsZero() {
		lease -= max(0, time.Since(c.HeldAt), time.Now().Round(0).Sub(c.HeldAt.Round(0)))
	}
	req := supervisor.Request{
		Mode: b.mode, Bwrap: b.bwrap, Args: c.Args, OwnProgram: c.OwnProgram, Env: b.commandEnv(c), Workspace: c.Workspace, Dir: c.Dir, WritableDir: c.WritableDir, WritesAll: c.WritesAll,
		UID: -1, GID: -1, Read: b.readablePaths(c), Memory: int64(b.cfg.MemoryMB) << 20, Tmp: int64(b.cfg.TmpMB) << 20,
		Processes: b.cfg.Processes, Groups: b.groups, Quota: c.Quota, Lease: now + int64(lease), MostlyIdle: c.MostlyIdle,
		ReadOnly: c.ReadOnly, ShownFolders: slices.Clone(c.ShownFolders), Personal: c.Personal,
	}
	if deadline, ok := ctx.Deadline(); ok {
		req.Deadline = now + int64(time.Until(deadline))
	}
	if err := b.allowNetwork(&req, c); err != nil {
		return req, err
	}
	return req, chooseUser(c, &req)
}

// readablePaths returns the configured files and folders that a command can read: all, unless ReadsFor is set.
func (b *Box) readablePaths(c Command) []string {
	if c.ReadsFor == nil {
		return b.cfg.Read
	}
	return slices.DeleteFunc(slices.Clone(b.cfg.Read), func(shown string) bool {
		return !slices.ContainsFunc(c.ReadsFor, func(name string) bool {
			below, err := filepath.Rel(shown, name)
			return err == nil && filepath.IsLocal(below)
		})
	})
}

// allowNetwork adds to a request what its command may reach: some hosts, the whole network, or nothing. It returns
// ErrCannotProvideNetwork if the mode can't provide that, and ErrNoNetworkIsolation if it can't keep the command from
// reaching more.
func (b *Box) allowNetwork(req *supervisor.Request, c Command) error {
	network := b.cfg.Network
	if c.Reach != nil {
		network = *c.Reach
	}
	switch {
	case c.OwnProgram:
	case c.Network && b.mode == Landlock && (network.Full || len(network.Hosts) > 0):
		return ErrCannotProvideNetwork
	case c.Network && b.mode == None && c.Reach != nil && !network.Full:
		return ErrNoNetworkIsolation
	case c.Network:
		req.FullNet, req.Hosts = network.Full, network.Hosts
	case b.mode == None:
		return ErrNoNetworkIsolation
	}
	return nil
}

// chooseUser chooses the user that runs the commands of a root process: the owner of the workspace, or of another
// folder, but never root. It returns an error if the folder is missing or was replaced.
func chooseUser(c Command, r *supervisor.Request) error {
	folder := cmp.Or(c.Workspace, c.Owner)
	if folder == "" {
		r.UID, r.GID = commandUser(nil)
		return nil
	}
	info, err := os.Stat(folder)
	if err != nil {
		return errors.New("its workspace is not there") // the model need not know the path
	}
	if os.Geteuid() == 0 {
		if err := checkFolder(folder, info, c.Opened); err != nil {
			return err
		}
		if st, ok := info.Sys().(*syscall.Stat_t); ok && c.Workspace != "" {
			r.Folder = supervisor.FolderID{Dev: uint64(st.Dev), Ino: st.Ino}
		}
	}
	r.UID, r.GID = commandUser(info)
	r.Mapped = r.UID >= 0 && c.Personal && c.Workspace != "" && belongsToRoot(info)
	return nil
}

// checkFolder returns ErrReplaced if the folder that is now at a path is not the one that was opened. If none was
// opened, it returns ErrReplaced if the path is a link to the folder.
func checkFolder(path string, now, opened fs.FileInfo) error {
	if opened == nil {
		var err error
		if opened, err = os.Lstat(path); err != nil {
			return err
		}
	}
	if !os.SameFile(now, opened) {
		return ErrReplaced
	}
	return nil
}

// belongsToRoot reports whether a file belongs to root.
func belongsToRoot(of os.FileInfo) bool {
	st, ok := of.Sys().(*syscall.Stat_t)
	return !ok || st.Uid == 0
}

// CheckPersonal returns ErrRootsOwn if no command can run in a person's own directory because that belongs to root.
func CheckPersonal(dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(dir)
	if err != nil || !belongsToRoot(info) {
		return err
	}
	if err := supervisor.CheckIDMapping(dir); err != nil {
		return fmt.Errorf("%w: %w", ErrRootsOwn, err)
	}
	return nil
}

// commandUser returns the user and group as which commands run for the owner of a file; -1 for this process's own.
// The group is never root's, either.
func commandUser(of os.FileInfo) (uid, gid int) {
	if os.Geteuid() != 0 {
		return -1, -1
	}
	if of != nil {
		if st, ok := of.Sys().(*syscall.Stat_t); ok && !belongsToRoot(of) {
			return int(st.Uid), cmp.Or(int(st.Gid), CommandUser)
		}
	}
	return CommandUser, CommandUser
}

// commandEnv returns the command's environment. It includes only those of this process's variables that are
// configured.
func (b *Box) commandEnv(c Command) []string {
	env := []string{"PATH=" + supervisor.Path, "LANG=C.UTF-8", "TERM=dumb", "USER=agent", "LOGNAME=agent", "SHELL=/bin/sh", "GIT_CONFIG_NOSYSTEM=1"}
	for _, name := range b.cfg.Env {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return append(env, c.Env...)
}

// runSupervised runs a request under a supervisor of its own, and returns the supervisor's report. An error means that
// the command was not run, or that it is unknown how it ended.
func (b *Box) runSupervised(ctx context.Context, req supervisor.Request, stdin io.Reader, stdout, stderr io.Writer) (supervisor.Report, error) {
	p, err := b.startSupervisor(req.Proxied(), stdin, stdout, stderr)
	if err != nil {
		return supervisor.Report{}, err
	}
	ended := make(chan struct{})
	var beside sync.WaitGroup
	beside.Go(func() { p.sendLeases(ctx, req, ended) })
	kill := context.AfterFunc(ctx, func() {
		select {
		case <-ended:
		case <-time.After(endTimeout):
			_ = p.cmd.Process.Kill() // it may have ended just now
		}
	})
	raw, readErr := io.ReadAll(io.LimitReader(p.report, 1<<20))
	waitErr := p.cmd.Wait()
	close(ended)
	kill()
	beside.Wait()
	if err := errors.Join(readErr, p.report.Close()); err != nil {
		return supervisor.Report{}, err
	}
	var rep supervisor.Report
	if json.Unmarshal(raw, &rep) != nil {
		return supervisor.Report{}, fmt.Errorf("the supervisor has not said how it ended: %w", errors.Join(waitErr, io.ErrUnexpectedEOF))
	}
	switch rep.Fault {
	case supervisor.Late:
		return supervisor.Report{}, ErrLate
	case supervisor.Setup:
		return supervisor.Report{}, errSetup
	case supervisor.Unreachable:
		return supervisor.Report{}, fmt.Errorf("%w: %s", ErrUnreachable, rep.Failure)
	case supervisor.Replaced:
		return supervisor.Report{}, ErrReplaced
	case supervisor.Unmapped:
		return supervisor.Report{}, fmt.Errorf("%w: %s", ErrRootsOwn, rep.Failure)
	}
	if rep.Failure != "" {
		return supervisor.Report{}, errors.New(rep.Failure)
	}
	return rep, nil
}

// supervisorProgram returns the program that supervises commands.
func (b *Box) supervisorProgram() string { return cmp.Or(b.cfg.Supervisor, supervisor.ThisProgram) }

// A supervisorProcess is a running supervisor.
type supervisorProcess struct {
	cmd     *exec.Cmd
	control *os.File
	report  *os.File
}

// startSupervisor starts a supervisor: this program again, or the configured one.
func (b *Box) startSupervisor(proxied bool, stdin io.Reader, stdout, stderr io.Writer) (*supervisorProcess, error) {
	controlEnd, control, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	rep, reportEnd, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, controlEnd.Close(), control.Close())
	}
	args := []string{supervisor.Command}
	if proxied {
		args = append(args, supervisor.Proxying)
	}
	cmd := exec.Command(b.supervisorProgram(), args...) //nolint:noctx // the supervisor ends what it has started before it ends itself
	cmd.Env = []string{supervisorEnv + "=1"}            // and nothing of this process's environment
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
	cmd.ExtraFiles = []*os.File{controlEnd, reportEnd}
	cmd.WaitDelay = time.Second
	err = cmd.Start()
	err = errors.Join(err, controlEnd.Close(), reportEnd.Close())
	if err != nil {
		return nil, errors.Join(err, control.Close(), rep.Close())
	}
	return &supervisorProcess{cmd: cmd, control: control, report: rep}, nil
}

// sendLeases sends the request to the supervisor, and then at intervals how long the command may continue, until
// the supervisor has ended or ctx is done.
func (p *supervisorProcess) sendLeases(ctx context.Context, req supervisor.Request, ended <-chan struct{}) {
	defer func() { _ = p.control.Close() }() // the supervisor may be gone
	raw, err := plainjson.Marshal(req)
	if err != nil {
		return // the supervisor sees the end of the pipe, and reports that it got no request
	}
	if _, err := p.control.Write(append(raw, '\n')); err != nil {
		return
	}
	every := time.NewTicker(leaseEvery)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ended:
			return
		case <-every.C:
		}
		now := supervisor.Clock()
		if ctx.Err() != nil {
			return
		}
		line := append(strconv.AppendInt(nil, now+int64(leaseTime), 10), '\n')
		if _, err := p.control.Write(line); err != nil {
			return
		}
	}
}
