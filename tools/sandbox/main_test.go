//go:build linux

package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"parley/tools/sandbox"
	"parley/tools/sandbox/cgroup"
	"parley/tools/testrace"
)

// The test binary is three programs: the tests, what the sandbox runs this program
// for, and what is run inside, or instead of a worker, by the tests.
func TestMain(m *testing.M) {
	if code, asked := sandbox.Main(os.Args); asked {
		os.Exit(code)
	}
	if len(os.Args) > 2 && os.Args[1] == "attempt" {
		if err := attempt(os.Args[2], os.Args[3:]...); err != nil {
			fmt.Println("refused:", err)
			os.Exit(9)
		}
		fmt.Println("done")
		os.Exit(0)
	}
	if os.Getenv(inGroup) != "" {
		os.Exit(m.Run())
	}
	os.Exit(testrace.Run(func() int { return bounded(m.Run) }))
}

// bounded runs the tests where they cannot take the machine: some of the commands try
// to, and one day the walls may not stand. Below the group that the tests are in they
// make the groups of their commands.
func bounded(run func() int) int {
	const most = 6000
	place, err := cgroup.Find()
	if err != nil {
		// Root is not bound by this; others are.
		if err := unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			fmt.Println("the tests are not bounded:", err)
		}
		return run()
	}
	g, err := place.Make(cgroup.Limits{Tasks: most})
	if err != nil {
		fmt.Println("the tests are not bounded:", err)
		return run()
	}
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), inGroup+"=1")
	err = g.Start(cmd)
	if err == nil {
		err = cmd.Wait()
	}
	for g.Kill() {
		<-time.After(time.Millisecond) // those that were killed take a moment to go
	}
	if removed := g.Remove(); removed != nil {
		fmt.Println("a control group is left:", removed)
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		fmt.Println("the tests were not run:", err)
		return 1
	}
	return 0
}

// inGroup is set where the tests run in a group.
const inGroup = "PARLEY_TEST_IN_GROUP"

// attempt is what a command tries that a shell has no words for.
func attempt(what string, args ...string) error {
	switch what {
	case "tcp", "udp", "unix", "unixgram":
		c, err := (&net.Dialer{Timeout: 5 * time.Second}).Dial(what, args[0])
		if err != nil {
			return err
		}
		_, err = io.WriteString(c, "hello")
		return err
	case "pair": // a pair of sockets for datagrams, turned to a path
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
		if err != nil {
			return err
		}
		return unix.Sendto(fds[0], []byte("hello"), 0, &unix.SockaddrUnix{Name: args[0]})
	case "stream": // which programs use to speak with their children
		_, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		return err
	case "vsock":
		fd, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		return unix.Close(fd)
	case "signal":
		return unix.Kill(number(args[0]), unix.SIGTERM)
	case "limit": // another process's limits
		return unix.Prlimit(number(args[0]), unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: 3}, nil)
	case "trace":
		return unix.PtraceAttach(number(args[0]))
	case "memory":
		return hold(number(args[0]))
	case "memfd":
		_, err := unix.MemfdCreate("x", 0)
		return err
	case "ring":
		return ring()
	case "namespace":
		return unix.Unshare(unix.CLONE_NEWUSER)
	case "without landlock":
		return withoutLandlock(args)
	case "open":
		_, err := sandbox.Open(context.Background(), config(sandbox.Auto))
		if absent, ok := errors.AsType[*sandbox.AbsentError](err); ok {
			return errors.New("absent: " + absent.Error() + absent.Remedy())
		}
		return err
	case "walk kernel":
		return walkKernel(len(args) > 0)
	case "absent":
		return absent()
	case "in a container":
		return inContainer(sandbox.Mode(args[0]), args[1])
	case "change":
		return changeOpen(args[0], args[1] == "may")
	case "who":
		return who()
	case "set-ID":
		return setIDs()
	case "nest":
		return nest(number(args[0]))
	case "own": // what this program does inside for itself
		return own()
	case "replaced":
		return replaced(sandbox.Mode(args[0]))
	case "worker":
		return worker(args[0], args[1], args[2])
	}
	return errors.New("no such attempt")
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

// hold takes so many megabytes, and keeps them until it is ended.
func hold(mb int) error {
	kept := make([][]byte, 0, mb)
	for range mb {
		part := make([]byte, 1<<20)
		for i := 0; i < len(part); i += 4096 {
			part[i] = 1
		}
		kept = append(kept, part)
	}
	err := unix.Pause()
	runtime.KeepAlive(kept)
	return err
}

// worker runs a command that never ends in a sandbox of its own.
func worker(mode, workspace, command string) error {
	b, err := sandbox.Open(context.Background(), config(sandbox.Mode(mode)))
	if err != nil {
		return err
	}
	_, err = b.Run(context.Background(), sandbox.Command{Args: []string{"sh", "-c", command}, Workspace: workspace, Network: true})
	return err
}

// own looks around, and gives back what it reads.
func own() error {
	if err := os.WriteFile(filepath.Join(os.TempDir(), "file"), []byte("x"), 0o600); err != nil {
		return fmt.Errorf("its temporary files: %w", err)
	}
	for _, path := range []string{"/usr/own", "/own", os.Getenv("PARLEY_TEST_TOLD")} {
		if os.WriteFile(path, []byte("x"), 0o600) == nil {
			return errors.New("it could write " + path)
		}
	}
	if _, err := os.ReadFile(os.Getenv("PARLEY_TEST_TOLD")); err == nil {
		return errors.New("it could read what is outside")
	}
	if c, err := (&net.Dialer{Timeout: 5 * time.Second}).Dial("tcp", os.Getenv("PARLEY_TEST_LISTENS")); err == nil {
		return errors.Join(errors.New("it reached the network"), c.Close())
	}
	_, err := io.Copy(os.Stdout, os.Stdin)
	return err
}

// replaced runs this program inside after its file is gone.
func replaced(mode sandbox.Mode) error {
	program, err := os.Executable()
	if err == nil {
		err = os.Remove(program)
	}
	if err != nil {
		return err
	}
	cfg := config(mode)
	cfg.Supervisor = ""
	b, err := sandbox.Open(context.Background(), cfg)
	if err != nil {
		return err
	}
	r, err := b.Run(context.Background(), sandbox.Command{Own: true, Args: []string{"attempt", "stream"}})
	if err == nil && (r.ExitCode != 0 || r.Stdout != "done\n") {
		err = fmt.Errorf("it gave %+v", r)
	}
	return err
}

func config(mode sandbox.Mode) sandbox.Config {
	cfg := sandbox.Config{Mode: mode, MemoryMB: 512, Processes: 64, TmpMB: 64, Supervisor: testrace.Program(), Log: slog.New(slog.DiscardHandler)}
	cfg.Network.Full = mode == sandbox.None
	return cfg
}

// eachMode runs a test within each kind of walls.
func eachMode(t *testing.T, test func(t *testing.T, b *sandbox.Box)) {
	eachModeWith(t, func(*sandbox.Config) {}, test)
}

func eachModeWith(t *testing.T, change func(*sandbox.Config), test func(t *testing.T, b *sandbox.Box)) {
	t.Helper()
	for _, mode := range []sandbox.Mode{sandbox.Bubblewrap, sandbox.Landlock} {
		t.Run(string(mode), func(t *testing.T) {
			test(t, open(t, mode, change))
		})
	}
}

// open is a sandbox in which this program can be run too.
func open(t *testing.T, mode sandbox.Mode, change func(*sandbox.Config)) *sandbox.Box {
	t.Helper()
	cfg := config(mode)
	cfg.Read = []string{filepath.Dir(self(t))}
	change(&cfg)
	b, err := sandbox.Open(t.Context(), cfg)
	if err != nil {
		t.Skipf("NOT TESTED: this machine cannot have the sandbox %s: %v", mode, err)
	}
	return b
}

// self returns the path of the tests' program, without the race detector where that is built: it is
// run many times.
func self(t *testing.T) string {
	t.Helper()
	if path := testrace.Program(); path != "" {
		return path
	}
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// sh runs a line of shell for a session, in at most 20 seconds.
func sh(t *testing.T, b *sandbox.Box, workspace, line string, args ...string) sandbox.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r, err := b.Run(ctx, sandbox.Command{
		Args: append([]string{"sh", "-c", line, "sh"}, args...), Workspace: workspace, Network: b.Mode() == sandbox.None,
		Quota: sandbox.Quota{Bytes: 20 << 20, Items: 1000},
	})
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return r
}

// try makes an attempt inside.
func try(t *testing.T, b *sandbox.Box, workspace string, what ...string) sandbox.Result {
	t.Helper()
	return sh(t, b, workspace, `exec "$@"`, append([]string{self(t), "attempt"}, what...)...)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// with lists the processes whose arguments hold a text.
func with(text string) (pids []int) {
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range names {
		raw, err := os.ReadFile(name)
		pid := number(filepath.Base(filepath.Dir(name)))
		if err == nil && pid != os.Getpid() && strings.Contains(string(raw), text) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// waitFor waits until something holds.
func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for until := time.Now().Add(20 * time.Second); !holds(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("waited too long for %s", what)
		}
	}
}

// withoutLandlock becomes another program for which the kernel has no Landlock.
func withoutLandlock(args []string) error {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_LANDLOCK_CREATE_RULESET, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0x00050000 | uint32(unix.EOPNOTSUPP)},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0x7fff0000},
	}
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, failed := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program))); failed != 0 {
		return failed
	}
	return syscall.Exec(args[0], args, []string{"TMPDIR=" + os.TempDir()})
}

// With neither there is no sandbox, whatever else works: nothing is run.
func TestWithNeitherThereIsNone(t *testing.T) {
	out, err := exec.Command(self(t), "attempt", "without landlock", self(t), "attempt", "open").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "absent") || !strings.Contains(string(out), "bwrap is not installed") || !strings.Contains(string(out), "no Landlock") || !strings.Contains(string(out), "install bubblewrap") {
		t.Errorf("it ended with %v: %s", err, out)
	}
}
