package supervisor

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"parley/tools/plainjson"
)

// Clock returns the time since the machine was started, in nanoseconds. It is the same for all
// processes, and continues while a process is paused and while the machine sleeps.
func Clock() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		panic(err) // Linux has it since 2.6.39
	}
	return now.Nano()
}

// supervise runs one command, ends it when its time is over, writes the report, and returns the supervisor's exit
// code: 1 if the report could not be written. It runs in a process of its own, so that the command is ended even if
// the process that asked for it has died.
func supervise(proxy func(hosts []string) Proxy) int {
	unix.CloseOnExec(controlFD)
	unix.CloseOnExec(reportFD) // commands write no report
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
	s := &supervisor{signals: signals, unwanted: make(chan struct{}), proxy: proxy}
	s.workspace.request = &s.Request
	rep := s.run(os.NewFile(controlFD, "control"))
	raw, err := plainjson.Marshal(rep)
	if err == nil {
		_, err = os.NewFile(reportFD, "report").Write(raw)
	}
	if err != nil {
		return 1
	}
	return 0
}

// A supervisor runs one command and ends everything that the command has started.
type supervisor struct {
	Request
	signals       <-chan os.Signal
	lease         atomic.Int64
	unwanted      chan struct{} // closed when the caller is gone or no longer wants the command
	child         *child
	scope         scope
	group         *group
	workspace     workspace
	nextDiskCheck time.Time                  // when to measure the disk next
	proxy         func(hosts []string) Proxy // nil if none is needed
	view          *os.File                   // the namespace in which openPlacesToUser has covered folders; nil if it has covered none
	writes        *os.File                   // the folder that the command can write to; nil means the workspace
}

// A child is the running command, with the processes that run it.
type child struct {
	cmd *exec.Cmd
	// extraProcesses is how many of the child's processes are not the command's.
	extraProcesses int
	tmp            string // its folder for temporary files on this machine; "" means none
	// exitCode returns the program's exit code once the child has ended, given the result of waiting for the child; it
	// returns an error if the program was not run.
	exitCode func(err error) (int, error)
	// refusedHosts returns the hosts that the command asked for and may not reach; nil without a proxy.
	refusedHosts func() []string
	close        func() error // cleans up after the child has ended
}

// failureReport returns the report that a command was not run, or that it is unknown how it ended.
func failureReport(err error) Report {
	switch {
	case errors.Is(err, errLate):
		return Report{Failure: err.Error(), Fault: Late}
	case errors.Is(err, errSetup):
		return Report{Failure: err.Error(), Fault: Setup}
	case errors.Is(err, errUnreachable):
		return Report{Failure: err.Error(), Fault: Unreachable}
	case errors.Is(err, errReplaced):
		return Report{Failure: err.Error(), Fault: Replaced}
	case errors.Is(err, errUnmapped):
		return Report{Failure: err.Error(), Fault: Unmapped}
	}
	return Report{Failure: err.Error()}
}

// run reads the request and runs its command; the report says how it ended.
func (s *supervisor) run(control *os.File) Report {
	lines := bufio.NewReader(control)
	line, err := lines.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &s.Request)
	}
	if err != nil {
		return failureReport(fmt.Errorf("read the request: %w", err))
	}
	s.lease.Store(s.Lease)
	go s.readLeases(lines)
	// A process whose parent ends becomes a child of this one, and is ended with the others.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return failureReport(err)
	}
	if err := errors.Join(s.checkUser(), s.openPlacesToUser()); err != nil {
		return failureReport(err)
	}
	if Clock() > s.lease.Load() {
		return failureReport(errLate) // a successor may be at work
	}
	if s.workspace.needsTidying() {
		if s.workspace.usageBefore, _, err = s.workspace.tidy(); err != nil {
			return failureReport(fmt.Errorf("look through the workspace: %w", err))
		}
	}
	if Clock() > s.lease.Load() {
		return failureReport(errLate)
	}
	if err := s.openWrites(); err != nil {
		return failureReport(fmt.Errorf("open the folder that it writes to: %w", err))
	}
	defer s.closeWrites()
	s.group = makeGroup(&s.Request)
	defer s.group.remove()
	began := time.Now()
	if s.child, err = s.start(); err != nil {
		return failureReport(errors.Join(err, s.killAll()))
	}
	rep := s.awaitChild()
	rep.Duration, rep.Grouped = time.Since(began), s.group != nil
	return rep
}

// readLeases keeps reading from the caller until when the command may continue. It ends when the
// caller closes the pipe.
func (s *supervisor) readLeases(lines *bufio.Reader) {
	defer close(s.unwanted)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		if until, err := strconv.ParseInt(strings.TrimSuffix(line, "\n"), 10, 64); err == nil {
			s.lease.Store(until)
		}
	}
}

// start starts the child in the request's mode.
func (s *supervisor) start() (*child, error) {
	if err := lowerLimit(unix.RLIMIT_CORE, 0); err != nil {
		return nil, err
	}
	if err := lowerLimit(unix.RLIMIT_NOFILE, 4096); err != nil {
		return nil, err
	}
	if s.Quota.Bytes > 0 {
		if err := lowerLimit(unix.RLIMIT_FSIZE, uint64(s.Quota.largestFile())); err != nil {
			return nil, err
		}
	}
	switch s.Mode {
	case Bubblewrap:
		return s.startBubblewrap()
	case Landlock:
		if err := s.scope.enter(); err != nil {
			return nil, err
		}
		return s.startWithoutNamespaces()
	case None:
		// No program that a command starts gets the rights of its file's owner.
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return nil, err
		}
		return s.startWithoutNamespaces()
	}
	return nil, fmt.Errorf("there is no mode %q", s.Mode)
}

// lowerLimit sets both limits, soft and hard, of this process and of what it starts to most, or to
// the present hard limit if that is lower.
func lowerLimit(what int, most uint64) error {
	var now unix.Rlimit
	if err := unix.Getrlimit(what, &now); err != nil {
		return err
	}
	most = min(most, now.Max)
	return unix.Setrlimit(what, &unix.Rlimit{Cur: most, Max: most})
}

// awaitChild waits until the child has ended, ends it if necessary, and returns the report.
func (s *supervisor) awaitChild() Report {
	ended := make(chan error, 1)
	go func() { ended <- s.child.cmd.Wait() }()
	killed, detail, end := s.watch(ended)
	waiting := killed != ""
	if !waiting {
		killed, detail = s.group.exceeded()
	}
	err := s.killAll()
	if waiting && err == nil {
		end = <-ended
	}
	rep := Report{ExitCode: -1, Killed: killed, Detail: detail}
	if killed == "" {
		rep.ExitCode, end = s.child.exitCode(end)
		if end != nil {
			rep = failureReport(end)
		}
		if s.child.refusedHosts != nil {
			rep.Refused = s.child.refusedHosts()
		}
	}
	s.workspace.tidyAfter(&rep)
	if err = errors.Join(err, s.child.close()); err != nil {
		return failureReport(fmt.Errorf("clear up after the command: %w", err))
	}
	return rep
}

// watch waits until the child ends by itself, or has to be ended. In the first case, killed and detail are "", and end
// is the result of waiting for it. In the second, killed and detail say why it has to be ended.
func (s *supervisor) watch(ended <-chan error) (killed Reason, detail string, end error) {
	tick := time.NewTicker(s.inspectInterval())
	defer tick.Stop()
	for {
		if killed, detail = s.expired(); killed != "" {
			return killed, detail, nil
		}
		select {
		case end = <-ended:
			return "", "", end
		case <-s.unwanted:
			return Cancelled, "nobody wants it any longer", nil
		case <-s.signals:
			return Cancelled, "the machine is being stopped", nil
		case <-time.After(s.timeLeft()):
		case <-tick.C:
			if killed, detail = s.checkUsage(); killed != "" {
				return killed, detail, nil
			}
		}
	}
}

// timeLeft returns the time until the deadline; if there is none, it returns an hour, after which the caller asks
// again.
func (s *supervisor) timeLeft() time.Duration {
	if s.Deadline == 0 {
		return time.Hour
	}
	return max(0, time.Duration(s.Deadline-Clock()))
}

// expired returns whether the command's deadline or its lease has passed, as a Reason and in words; both are "" if
// neither has.
func (s *supervisor) expired() (Reason, string) {
	now := Clock()
	switch {
	case s.Deadline != 0 && now >= s.Deadline:
		return Timeout, "its time was over"
	case now > s.lease.Load():
		return Lease, "the process that ran it died or stood still"
	}
	return "", ""
}

// checkUsage returns which limit the command exceeds, as a Reason and in words; both are "" if none.
func (s *supervisor) checkUsage() (Reason, string) {
	if killed, detail := s.group.exceeded(); killed != "" {
		return killed, detail
	}
	tree, err := descendants()
	if err != nil {
		return "", "" // usage that can't be measured now is measured again the next time
	}
	reap(tree.children, s.child.cmd.Process.Pid)
	if n := len(tree.all) - s.child.extraProcesses; s.Processes > 0 && n > s.Processes {
		return Processes, fmt.Sprintf("it had %d processes, at most %d are allowed", n, s.Processes)
	}
	if used := memoryOf(tree.all); s.Memory > 0 && used > s.Memory {
		return Memory, fmt.Sprintf("it took %d MB of memory, at most %d are allowed", used>>20, s.Memory>>20)
	}
	if now := time.Now(); !now.Before(s.nextDiskCheck) {
		over := s.overDiskText()
		// Counting many files takes long, so it may use at most a tenth of the time.
		pause := 9 * time.Since(now)
		if s.MostlyIdle {
			pause *= 10
		}
		s.nextDiskCheck = time.Now().Add(pause)
		return reasonFor(over), over
	}
	return "", ""
}

// reasonFor returns the reason that belongs to overDiskText's result; "" if there is none.
func reasonFor(over string) Reason {
	if over == "" {
		return ""
	}
	return Disk
}

// overDiskText says which of the command's folders exceeds its limit, and how; "" if none.
func (s *supervisor) overDiskText() string {
	if over := s.workspace.measure(); over != "" {
		return over
	}
	if s.child.tmp == "" {
		return ""
	}
	used, err := measure(s.child.tmp)
	if err != nil {
		return "its temporary files cannot be measured: " + err.Error()
	}
	if used.bytes > s.Tmp {
		return fmt.Sprintf("its temporary files took %d MB, at most %d are allowed", used.bytes>>20, s.Tmp>>20)
	}
	return ""
}

// killAll kills every descendant of the supervisor, and returns when none is left. No process
// escapes: one whose parent ends becomes a child of the supervisor. killAll doesn't give up as long
// as it can find the descendants, because nobody else would end them.
func (s *supervisor) killAll() error {
	own := 0
	if s.child != nil {
		own = s.child.cmd.Process.Pid
	}
	for {
		s.group.kill()
		if s.scope.isInside() {
			_ = unix.Kill(-1, unix.SIGKILL) // all at once, so that none can make another in the meantime
		} else if own > 0 {
			_ = unix.Kill(own, unix.SIGKILL) // if it is the first process of a namespace, the namespace ends with it
		}
		tree, err := descendants()
		if err != nil {
			return err
		}
		alive := 0
		for _, pid := range tree.all {
			if pid == own && hasEnded(pid) {
				continue // another goroutine collects it
			}
			alive++
			_ = unix.Kill(pid, unix.SIGKILL) // it may have ended just now
		}
		reaped := reap(tree.children, own)
		if alive == 0 {
			return nil
		}
		// Processes that had already ended need no time to end. The loop checks again anyway,
		// because their latest children may not have been seen.
		if reaped < alive && alive < 100 {
			time.Sleep(time.Millisecond)
		}
	}
}

// exitCode returns the exit code of a process that was run directly, given the result of waiting for it: 128 plus the
// signal if a signal ended it. It returns an error if the process was not run.
func exitCode(err error) (int, error) {
	if err == nil {
		return 0, nil
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return -1, err
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return exit.ExitCode(), nil
}
