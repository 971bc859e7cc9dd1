package sandbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"parley/tools/sandbox/cgroup"
)

const (
	// leaseTime is how long a command goes on after its caller was last known to be
	// at work: less than what is left then of a lease that others could take over.
	leaseTime = 3 * time.Second
	// leaseEvery is how often it is said that the caller is still at work.
	leaseEvery = 500 * time.Millisecond
	// endTimeout is how long a supervisor has for ending what it has started.
	endTimeout = 10 * time.Second
)

// The commands of this program that nobody types: it runs itself under them.
const (
	supervisorCommand = "sandbox-supervisor"
	enterCommand      = "sandbox-enter"
)

// The files that the supervisor has beside the command's own three.
const (
	controlFD = 3 // a request, then leases, each a line; its end ends the command
	reportFD  = 4 // the report
)

// A request is what the supervisor is told to run, and how.
type request struct {
	Mode      Mode
	Bwrap     string // the program, in the mode Bubblewrap
	Args      []string
	Own       bool // Args are this program's
	Env       []string
	Workspace string // "" is none
	Dir       string // below it
	Writes    string // below it: all that the command can write to; "" is the whole
	WritesAll bool
	UID, GID  int // whom it runs as; -1 is as the supervisor
	Read      []string
	FullNet   bool
	Hosts     []string // reached through the proxy
	Memory    int64    // bytes, as Tmp
	Tmp       int64
	Processes int
	Groups    cgroup.Place // nowhere, where there are no control groups
	Quota     Quota
	Waits     bool // see Command
	// Times are nanoseconds of the clock that runs since the machine was started,
	// also while it sleeps: both processes read the same. 0 is none.
	Deadline int64
	Lease    int64
}

// A report is how it went.
type report struct {
	ExitCode int
	Killed   Reason   `json:",omitempty"`
	Detail   string   `json:",omitempty"`
	Refused  []string `json:",omitempty"`
	Duration time.Duration
	Grouped  bool `json:",omitempty"` // whether it ran in a control group
	// Failure says why nothing was run, or nobody knows how it ended; Fault is
	// what of it callers decide on.
	Failure string `json:",omitempty"`
	Fault   fault  `json:",omitempty"`
}

type fault string

const (
	faultLate  fault = "late"
	faultSetup fault = "setup" // the walls could not be put up; standard error says why
)

// inside is where the workspace lies in the mode Bubblewrap: at the same place on
// every machine of a fleet, so that what is installed there works on each.
const inside = "/workspace"

// insideWrites is where the folder lies that a command can write to, where that is not
// its whole workspace. It is no place in the workspace: on the way there others could put
// a link, and the folder would lie elsewhere.
const insideWrites = "/job"

// thisProgram is this program, also after its file was replaced.
const thisProgram = "/proc/self/exe"

// searched is the PATH of every command.
const searched = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// nested is set for supervisors, and for nothing else.
const nested = "PARLEY_SANDBOX_SUPERVISOR"

// clock is the time since the machine was started, the same for all processes. It
// runs on while one stands still, and while the machine sleeps.
func clock() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		panic(err) // Linux has it since 2.6.39
	}
	return now.Nano()
}

// Run implements Sandbox.
func (b *Box) Run(ctx context.Context, c Command) (Result, error) {
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return Result{}, err
	}
	if len(c.Args) == 0 && !c.Own {
		return Result{}, errors.New("there is no program to run")
	}
	req, err := b.request(ctx, c)
	if err != nil {
		return Result{}, err
	}
	var both sync.Mutex
	half := cmp.Or(c.MaxOutput, MaxOutput) / 2
	stdout, stderr := &output{shared: &both, tell: c.Output, half: half}, &output{shared: &both, tell: c.Output, half: half}
	var out io.Writer = stdout
	if c.Stdout != nil {
		out = c.Stdout
	}
	rep, err := b.supervised(ctx, req, c.Stdin, out, stderr)
	if err != nil {
		b.groups.Sweep() // the supervisor may have been killed
		return Result{}, fmt.Errorf("run a command in the sandbox: %w", err)
	}
	if rep.Killed == Cancelled && errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		rep.Killed, rep.Detail = Timeout, "its time was over" // both saw it at the same moment
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

// request is what the supervisor is told.
func (b *Box) request(ctx context.Context, c Command) (request, error) {
	now := clock()
	lease := leaseTime
	if !c.Held.IsZero() {
		lease -= max(0, time.Since(c.Held), time.Now().Round(0).Sub(c.Held.Round(0)))
	}
	req := request{
		Mode: b.mode, Bwrap: b.bwrap, Args: c.Args, Own: c.Own, Env: b.environment(c), Workspace: c.Workspace, Dir: c.Dir, Writes: c.Writes, WritesAll: c.WritesAll,
		UID: -1, GID: -1, Read: b.cfg.Read, Memory: int64(b.cfg.MemoryMB) << 20, Tmp: int64(b.cfg.TmpMB) << 20,
		Processes: b.cfg.Processes, Groups: b.groups, Quota: c.Quota, Lease: now + int64(lease), Waits: c.Waits,
	}
	if deadline, ok := ctx.Deadline(); ok {
		req.Deadline = now + int64(time.Until(deadline))
	}
	if err := b.allowNetwork(&req, c); err != nil {
		return req, err
	}
	if c.Workspace == "" {
		return req, nil
	}
	return req, req.owner()
}

// allowNetwork gives a request what its command may reach.
func (b *Box) allowNetwork(req *request, c Command) error {
	network := b.cfg.Network
	if c.Reach != nil {
		network = *c.Reach
	}
	switch {
	case c.Own:
	case c.Network && b.mode == Landlock && (network.Full || len(network.Hosts) > 0):
		return ErrNoReach
	case c.Network && b.mode == None && c.Reach != nil && !network.Full:
		return ErrNoNetworkWall
	case c.Network:
		req.FullNet, req.Hosts = network.Full, network.Hosts
	case b.mode == None:
		return ErrNoNetworkWall
	}
	return nil
}

// owner lets root's commands run as whom the workspace belongs to: without root's
// capabilities they could not write to it.
func (r *request) owner() error {
	info, err := os.Stat(r.Workspace)
	if err != nil {
		return errors.New("its workspace is not there") // models need not know where
	}
	if of, ok := info.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 && of.Uid != 0 {
		r.UID, r.GID = int(of.Uid), int(of.Gid)
	}
	return nil
}

// environment is the command's: nothing of this process's but what is configured.
func (b *Box) environment(c Command) []string {
	env := []string{"PATH=" + searched, "LANG=C.UTF-8", "TERM=dumb", "USER=agent", "LOGNAME=agent", "SHELL=/bin/sh", "GIT_CONFIG_NOSYSTEM=1"}
	for _, name := range b.cfg.Env {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return append(env, c.Env...)
}

// supervised runs a request under a supervisor of its own.
func (b *Box) supervised(ctx context.Context, req request, stdin io.Reader, stdout, stderr io.Writer) (report, error) {
	p, err := b.startSupervisor(stdin, stdout, stderr)
	if err != nil {
		return report{}, err
	}
	ended := make(chan struct{})
	var beside sync.WaitGroup
	beside.Go(func() { p.keep(ctx, req, ended) })
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
		return report{}, err
	}
	var rep report
	if json.Unmarshal(raw, &rep) != nil {
		return report{}, fmt.Errorf("the supervisor has not said how it ended: %w", errors.Join(waitErr, io.ErrUnexpectedEOF))
	}
	switch rep.Fault {
	case faultLate:
		return report{}, ErrLate
	case faultSetup:
		return report{}, errSetup
	}
	if rep.Failure != "" {
		return report{}, errors.New(rep.Failure)
	}
	return rep, nil
}

// A supervisorProcess is a supervisor at work.
type supervisorProcess struct {
	cmd     *exec.Cmd
	control *os.File
	report  *os.File
}

// startSupervisor runs this program once more, or the one that is configured.
func (b *Box) startSupervisor(stdin io.Reader, stdout, stderr io.Writer) (*supervisorProcess, error) {
	controlEnd, control, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	rep, reportEnd, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, controlEnd.Close(), control.Close())
	}
	cmd := exec.Command(cmp.Or(b.cfg.Supervisor, thisProgram), supervisorCommand) //nolint:noctx // it ends what it has started before it ends
	cmd.Env = []string{nested + "=1"}                                             // and nothing of ours
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

// keep tells the supervisor what to run, and that we are at work, until it has
// ended or ctx does.
func (p *supervisorProcess) keep(ctx context.Context, req request, ended <-chan struct{}) {
	defer func() { _ = p.control.Close() }() // the supervisor may be gone
	raw, err := json.Marshal(req)
	if err != nil {
		return // the supervisor sees the end, and reports that it was told nothing
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
		now := clock()
		if ctx.Err() != nil {
			return
		}
		line := append(strconv.AppendInt(nil, now+int64(leaseTime), 10), '\n')
		if _, err := p.control.Write(line); err != nil {
			return
		}
	}
}
