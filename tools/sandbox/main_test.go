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

// The test binary is three programs: the tests, the program that the sandbox starts, and the program that the tests run
// inside the sandbox or instead of a worker.
func TestMain(m *testing.M) {
	if code, asked := sandbox.Main(os.Args); asked {
		os.Exit(code)
	}
	if len(os.Args) > 2 && os.Args[1] == "attempt" {
		if err := runAttempt(os.Args[2], os.Args[3:]...); err != nil {
			fmt.Println("refused:", err)
			os.Exit(9)
		}
		fmt.Println("done")
		os.Exit(0)
	}
	if os.Getenv(inGroup) != "" {
		os.Exit(m.Run())
	}
	os.Exit(testrace.Run(func() int { return runBounded(m.Run) }))
}

// runBounded runs the tests in a control group, because some commands try to take over the machine, and the isolation
// might fail one day. The commands' groups are made below that group.
func runBounded(run func() int) int {
	const most = 6000
	place, err := cgroup.Find()
	if err != nil {
		// This limit doesn't apply to root.
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

// runAttempt tries something that a shell has no command for.
func runAttempt(what string, args ...string) error {
	switch what {
	case "tcp", "udp", "unix", "unixgram":
		c, err := (&net.Dialer{Timeout: 5 * time.Second}).Dial(what, args[0])
		if err != nil {
			return err
		}
		_, err = io.WriteString(c, "hello")
		return err
	case "pair": // a pair of datagram sockets, connected to a path
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
		if err != nil {
			return err
		}
		return unix.Sendto(fds[0], []byte("hello"), 0, &unix.SockaddrUnix{Name: args[0]})
	case "stream": // as programs use to communicate with their children
		_, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		return err
	case "vsock":
		fd, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		return unix.Close(fd)
	case "signal":
		return unix.Kill(parseNumber(args[0]), unix.SIGTERM)
	case "limit": // another process's limits
		return unix.Prlimit(parseNumber(args[0]), unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: 3}, nil)
	case "trace":
		return unix.PtraceAttach(parseNumber(args[0]))
	case "memory":
		return holdMemory(parseNumber(args[0]))
	case "memfd":
		_, err := unix.MemfdCreate("x", 0)
		return err
	case "ring":
		return tryIOUring()
	case "namespace":
		return unix.Unshare(unix.CLONE_NEWUSER)
	case "without landlock":
		return withoutLandlock(args)
	case "open":
		_, err := sandbox.Open(context.Background(), testConfig(sandbox.Auto))
		if absent, ok := errors.AsType[*sandbox.AbsentError](err); ok {
			return errors.New("absent: " + absent.Error() + absent.Remedy())
		}
		return err
	case "walk kernel":
		return walkKernel(len(args) > 0)
	case "absent":
		return wantAbsent()
	case "in a container":
		return inContainer(sandbox.Mode(args[0]), args[1])
	case "change":
		return tryChangingOpenFile(args[0], args[1] == "may")
	case "who":
		return checkNotRoot()
	case "set-ID":
		return trySetIDs()
	case "nest":
		return makeNested(parseNumber(args[0]))
	case "own": // what this program does inside the sandbox
		return inspectOwn()
	case "replaced":
		return runReplaced(sandbox.Mode(args[0]))
	case "worker":
		return runWorker(args[0], args[1], args[2])
	}
	return errors.New("no such attempt")
}

func parseNumber(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

// holdMemory takes that many megabytes, and keeps them until it is ended.
func holdMemory(mb int) error {
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

// runWorker runs a command that never ends in a sandbox of its own.
func runWorker(mode, workspace, command string) error {
	b, err := sandbox.Open(context.Background(), testConfig(sandbox.Mode(mode)))
	if err != nil {
		return err
	}
	_, err = b.Run(context.Background(), sandbox.Command{Args: []string{"sh", "-c", command}, Workspace: workspace, Network: true})
	return err
}

// inspectOwn looks around inside the sandbox, and copies its input to its output.
func inspectOwn() error {
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

// runReplaced runs this program inside the sandbox after its file was removed.
func runReplaced(mode sandbox.Mode) error {
	program, err := os.Executable()
	if err == nil {
		err = os.Remove(program)
	}
	if err != nil {
		return err
	}
	cfg := testConfig(mode)
	cfg.Supervisor = ""
	b, err := sandbox.Open(context.Background(), cfg)
	if err != nil {
		return err
	}
	r, err := b.Run(context.Background(), sandbox.Command{OwnProgram: true, Args: []string{"attempt", "stream"}})
	if err == nil && (r.ExitCode != 0 || r.Stdout != "done\n") {
		err = fmt.Errorf("it gave %+v", r)
	}
	return err
}

func testConfig(mode sandbox.Mode) sandbox.Config {
	cfg := sandbox.Config{Mode: mode, MemoryMB: 512, Processes: 64, TmpMB: 64, Supervisor: testrace.Program(), Log: slog.New(slog.DiscardHandler)}
	cfg.Network.Full = mode == sandbox.None
	return cfg
}

// eachMode runs a test in each mode.
func eachMode(t *testing.T, test func(t *testing.T, b *sandbox.Box)) {
	eachModeWith(t, func(*sandbox.Config) {}, test)
}

func eachModeWith(t *testing.T, change func(*sandbox.Config), test func(t *testing.T, b *sandbox.Box)) {
	t.Helper()
	for _, mode := range []sandbox.Mode{sandbox.Bubblewrap, sandbox.Landlock} {
		t.Run(string(mode), func(t *testing.T) {
			test(t, openBox(t, mode, change))
		})
	}
}

// openBox opens a sandbox in which this program can also be run.
func openBox(t *testing.T, mode sandbox.Mode, change func(*sandbox.Config)) *sandbox.Box {
	t.Helper()
	cfg := testConfig(mode)
	cfg.Read = []string{filepath.Dir(testProgram(t))}
	change(&cfg)
	b, err := sandbox.Open(t.Context(), cfg)
	if err != nil {
		t.Skipf("NOT TESTED: this machine cannot have the sandbox %s: %v", mode, err)
	}
	return b
}

// testProgram returns the path of the tests' program, in a build without the race detector if possible, because it runs
// many times.
func testProgram(t *testing.T) string {
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

// runShell runs a line of shell for a session, for at most 20 seconds.
func runShell(t *testing.T, b *sandbox.Box, workspace, line string, args ...string) sandbox.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
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

// tryInside makes an attempt inside the sandbox.
func tryInside(t *testing.T, b *sandbox.Box, workspace string, what ...string) sandbox.Result {
	t.Helper()
	return runShell(t, b, workspace, `exec "$@"`, append([]string{testProgram(t), "attempt"}, what...)...)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// processesWith lists the processes whose arguments contain a text.
func processesWith(text string) (pids []int) {
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range names {
		raw, err := os.ReadFile(name)
		pid := parseNumber(filepath.Base(filepath.Dir(name)))
		if err == nil && pid != os.Getpid() && strings.Contains(string(raw), text) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// waitFor waits until a condition holds.
func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for until := time.Now().Add(2 * time.Minute); !holds(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("waited too long for %s", what)
		}
	}
}

// withoutLandlock turns this process into another program for which the kernel has no Landlock.
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

// If neither Landlock nor namespaces work, there is no sandbox, and nothing is run.
func TestNothingRunsWithoutAnyMode(t *testing.T) {
	out, err := exec.Command(testProgram(t), "attempt", "without landlock", testProgram(t), "attempt", "open").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "absent") || !strings.Contains(string(out), "bwrap is not installed") || !strings.Contains(string(out), "no Landlock") || !strings.Contains(string(out), "install bubblewrap") {
		t.Errorf("it ended with %v: %s", err, out)
	}
}
