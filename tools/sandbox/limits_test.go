//go:build linux

package sandbox_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"parley/tools/sandbox"
	"parley/tools/sandbox/cgroup"
	"parley/tools/testrace"
)

// An excess is a command that exceeds a limit, and the reasons for which it may be ended.
type excess struct {
	line        string
	reason      sandbox.Reason
	otherReason sandbox.Reason // another limit that it may reach first; "" for none
}

// endedFor reports whether a command was ended for its excess.
func (e excess) endedFor(r sandbox.Result) bool {
	return r.Killed != "" && (r.Killed == e.reason || r.Killed == e.otherReason) && r.Detail != "" && r.ExitCode == -1
}

// forkBomb returns a script that makes processes without end, if a limit applies: only control groups limit root.
func forkBomb(groups bool) string {
	if os.Geteuid() == 0 && !groups {
		return `bomb() { [ $1 -gt 0 ] && { bomb $(($1-1)) & bomb $(($1-1)) & }; sleep 10; }; bomb 9`
	}
	// The shell itself forks nothing after the bomb's first process, which may leave it none.
	return `sleep 10 & bomb() { bomb | bomb & }; bomb; wait`
}

// excessiveCommands returns the commands that are tried with and without control groups.
func excessiveCommands(groups bool) []excess {
	return []excess{
		{forkBomb(groups), sandbox.Processes, sandbox.Memory}, // that many shells may also exceed the memory
		{`for i in $(seq 100); do sleep 10 & done; wait`, sandbox.Processes, ""},
		{`"$1" attempt memory 200`, sandbox.Memory, ""},
		{`for i in 1 2 3 4 5; do "$1" attempt memory 20 & done; wait`, sandbox.Memory, ""},
	}
}

func TestTakesNoMoreThanItMay(t *testing.T) {
	change := func(c *sandbox.Config) { c.MemoryMB, c.TmpMB = 64, 8 }
	eachModeWith(t, change, func(t *testing.T, b *sandbox.Box) {
		for _, c := range append(excessiveCommands(b.Groups()), []excess{
			{`i=0; while :; do head -c 1000000 /dev/zero >big$i; i=$((i+1)); done`, sandbox.Disk, ""},
			{`i=0; while :; do : >many$i; i=$((i+1)); done`, sandbox.Disk, ""},
			{`mkdir closed; head -c 19000000 /dev/zero >closed/f; head -c 19000000 /dev/zero >g; chmod 0 closed; sleep 10`, sandbox.Disk, ""},
		}...) {
			workspace := t.TempDir()
			r := runShell(t, b, workspace, c.line, testProgram(t))
			if !c.endedFor(r) {
				t.Errorf("%s ended with %d, %q %s: %.300s", c.line, r.ExitCode, r.Killed, r.Detail, r.Stderr)
			}
		}
		// A file that is too large for its file system or its limit is an error for the program, however often the
		// workspace is measured meanwhile.
		r := runShell(t, b, t.TempDir(), `head -c 30000000 /dev/zero >big; truncate -s 1T sparse; ls -l; for i in 1 2 3; do mkdir d$i; echo x >d$i/f; sleep 0.2; done`)
		if r.Killed != "" || strings.Contains(r.Stderr, "killed") {
			t.Errorf("a large file: %+v", r)
		}
		if !strings.Contains(r.Stdout, " 20643840 ") || strings.Contains(r.Stdout, "1099511627776") {
			t.Errorf("it made files larger than the workspace may be: %s", r.Stdout)
		}
		r = runShell(t, b, t.TempDir(), `for i in 1 2 3 4; do head -c 9000000 /dev/zero >"$TMPDIR/$i"; done; sleep 1; echo over`)
		if b.Mode() == sandbox.Landlock && r.Killed != sandbox.Disk || b.Mode() == sandbox.Bubblewrap && !strings.Contains(r.Stderr, "No space left") {
			t.Errorf("temporary files: %+v", r)
		}
		// A workspace that exceeds its quota can be emptied, but not filled further.
		full := t.TempDir()
		for _, name := range []string{"a", "b"} {
			must(t, os.WriteFile(filepath.Join(full, name), make([]byte, 15<<20), 0o600))
		}
		if r := runShell(t, b, full, `sleep 0.3; rm a; echo removed`); r.Stdout != "removed\n" || r.Killed != "" {
			t.Errorf("it cannot be cleared: %+v", r)
		}
		must(t, os.WriteFile(filepath.Join(full, "a"), make([]byte, 15<<20), 0o600))
		if r := runShell(t, b, full, `head -c 1000000 /dev/zero >c`); r.Killed != sandbox.Disk {
			t.Errorf("it can be filled: %+v", r)
		}
	})
}

func TestOutputIsBounded(t *testing.T) {
	eachMode(t, func(t *testing.T, b *sandbox.Box) {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		var r sandbox.Result
		var err error
		for timeout := time.Second; timeout < time.Minute && len(r.Stdout) < sandbox.MaxOutput; timeout *= 4 { // a busy machine takes longer
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			r, err = b.Run(ctx, sandbox.Command{Args: []string{"sh", "-c", "echo first; yes ä; echo last"}, Workspace: t.TempDir()})
			cancel()
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if err != nil || r.Killed != sandbox.Timeout || r.ExitCode != -1 {
			t.Errorf("it ended with %v, %q", err, r.Killed)
		}
		if len(r.Stdout) < sandbox.MaxOutput || len(r.Stdout) > sandbox.MaxOutput+100 || !strings.HasPrefix(r.Stdout, "first\nä\n") ||
			!strings.Contains(r.Stdout, "bytes are left out …\n") || strings.ContainsRune(r.Stdout, '\uFFFD') {
			t.Errorf("%d bytes are kept: %.100s", len(r.Stdout), r.Stdout)
		}
		if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 4<<20 {
			t.Errorf("%d bytes of memory were kept", grown)
		}
		r = runShell(t, b, t.TempDir(), `seq 1 30000; echo end`)
		if !strings.HasPrefix(r.Stdout, "1\n2\n3\n") || !strings.HasSuffix(r.Stdout, "\n29999\n30000\nend\n") || r.ExitCode != 0 {
			t.Errorf("beginning and end are not kept: %.20s … %s", r.Stdout, r.Stdout[len(r.Stdout)-20:])
		}
	})
}

// stubbornScript starts processes that ignore signals to end. Its argument marks all of them.
const stubbornScript = `trap '' TERM HUP INT
	setsid sh -c 'trap "" TERM HUP; sleep 1001 & sleep 1001' "$1" &
	(sh -c 'trap "" TERM; while :; do sleep 1; done' "$1" &) &
	nohup setsid sleep 1001 >/dev/null 2>&1 &`

func TestNothingOutlivesACommand(t *testing.T) {
	eachMode(t, func(t *testing.T, b *sandbox.Box) {
		mark := "mark-" + t.Name() + "-" + time.Now().Format("150405.000000")
		none := func(when string) {
			t.Helper()
			if left := processesWith(mark); len(left) > 0 {
				t.Errorf("%s: %d processes are left", when, len(left))
			}
		}
		began := time.Now()
		if r := runShell(t, b, t.TempDir(), stubbornScript+`
			sleep 99 & echo hi`, mark); r.Stdout != "hi\n" || r.ExitCode != 0 || r.Killed != "" {
			t.Errorf("it gave %+v", r)
		}
		if d := time.Since(began); d > 15*time.Second {
			t.Errorf("it waited %v for what was in the background", d)
		}
		none("after its end")
		for _, how := range []string{"deadline", "cancel"} {
			ctx, cancel := context.WithCancel(t.Context())
			if how == "deadline" {
				ctx, cancel = context.WithTimeout(t.Context(), 700*time.Millisecond)
			}
			r, err := b.Run(ctx, sandbox.Command{
				Args: []string{"sh", "-c", stubbornScript + "\necho up; wait; sleep 100", "sh", mark}, Workspace: t.TempDir(),
				Output: func([]byte) {
					if how == "cancel" {
						cancel()
					}
				},
			})
			if how == "cancel" && !errors.Is(err, context.Canceled) || how == "deadline" && (err != nil || r.Killed != sandbox.Timeout) {
				t.Errorf("%s gave %+v, %v", how, r, err)
			}
			none("after a " + how)
			cancel()
		}
		if r := runShell(t, b, t.TempDir(), `kill -9 $$`, mark); r.ExitCode != 137 {
			t.Errorf("a signal gave %+v", r)
		}
	})
}

// A worker that dies, or is paused, leaves no process, and nothing more is written for it.
func TestAWorkerThatIsGone(t *testing.T) {
	eachMode(t, func(t *testing.T, b *sandbox.Box) {
		for _, how := range []struct {
			name   string
			signal unix.Signal
		}{{"killed", unix.SIGKILL}, {"stopped", unix.SIGSTOP}} {
			workspace := t.TempDir()
			mark := "mark-" + how.name + "-" + t.Name() + time.Now().Format("150405.000000")
			cmd := exec.Command(testProgram(t), "attempt", "worker", string(b.Mode()), workspace,
				"set -- "+mark+"; "+stubbornScript+` while :; do date +%N >>written; sleep 0.02; done # `+mark)
			must(t, cmd.Start())
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			written := filepath.Join(workspace, "written")
			waitFor(t, "the command to write", func() bool {
				info, err := os.Stat(written)
				return err == nil && info.Size() > 0
			})
			must(t, cmd.Process.Signal(how.signal))
			waitFor(t, "the command's end", func() bool {
				left := processesWith(mark)
				return !slices.ContainsFunc(left, func(pid int) bool { return pid != cmd.Process.Pid })
			})
			last, err := os.ReadFile(written)
			must(t, err)
			if how.signal == unix.SIGSTOP {
				must(t, cmd.Process.Signal(unix.SIGCONT))
			}
			if err := <-ended; err == nil && how.signal == unix.SIGKILL {
				t.Errorf("%s: the worker ended as if all was well", how.name)
			}
			now, err := os.ReadFile(written)
			must(t, err)
			if len(now) != len(last) {
				t.Errorf("%s: it went on writing", how.name)
			}
		}
	})
}

func TestCommandsAreNotStartedLate(t *testing.T) {
	eachMode(t, func(t *testing.T, b *sandbox.Box) {
		workspace := t.TempDir()
		c := sandbox.Command{Args: []string{"touch", "ran"}, Workspace: workspace, HeldAt: time.Now().Add(-time.Minute)}
		if _, err := b.Run(t.Context(), c); !errors.Is(err, sandbox.ErrLate) {
			t.Errorf("it gave %v", err)
		}
		if _, err := os.Stat(filepath.Join(workspace, "ran")); err == nil {
			t.Error("it ran")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		c.HeldAt = time.Now()
		if _, err := b.Run(ctx, c); !errors.Is(err, context.Canceled) {
			t.Errorf("after the end it gave %v", err)
		}
		c.Workspace = filepath.Join(workspace, "missing")
		if _, err := b.Run(t.Context(), c); err == nil {
			t.Error("without a workspace it ran")
		}
	})
}

// manyCalls is how many commands run one after the other in each mode. By hand it can be ten thousand, with a longer
// -timeout.
var manyCalls = flag.Int("calls", 60, "how many commands TestManyCallsLeaveNothing runs")

func TestManyCallsLeaveNothing(t *testing.T) {
	eachMode(t, func(t *testing.T, b *sandbox.Box) {
		tmp := t.TempDir()
		t.Setenv("TMPDIR", tmp)
		workspace := t.TempDir()
		runShell(t, b, workspace, `true`)
		files := func() int {
			entries, err := os.ReadDir("/proc/self/fd")
			must(t, err)
			return len(entries)
		}
		wantNoGroups(t, b.Place())
		fds, routines, held := files(), runtime.NumGoroutine(), len(processesWith(tmp))
		for range *manyCalls / 2 {
			done := make(chan struct{})
			go func() { // in parallel to another
				defer close(done)
				runShell(t, b, workspace, `echo x >"$TMPDIR/x"; sleep 60 & true`)
			}()
			if r := runShell(t, b, workspace, `echo $((1+1))`); r.Stdout != "2\n" {
				t.Fatalf("it gave %+v", r)
			}
			<-done
		}
		waitFor(t, "goroutines and files", func() bool { return runtime.NumGoroutine() <= routines && files() <= fds })
		wantNoGroups(t, b.Place())
		if n := len(processesWith(tmp)); n > held {
			t.Errorf("%d processes are left", n-held)
		}
		if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
			t.Errorf("%d files are left, %v", len(left), err)
		}
	})
}

func TestHostsThatAreAllowed(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("NOT TESTED: the hosts that a command may reach, for want of curl")
	}
	asked := make(chan string, 10)
	server := func(name string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked <- name
			_, _ = w.Write([]byte("hello from " + name))
		}))
		t.Cleanup(s.Close)
		return s.Listener.Addr().String()
	}
	open1, closed := server("open"), server("closed")
	b := openBox(t, sandbox.Bubblewrap, func(c *sandbox.Config) { c.Network.Hosts = []string{open1} })
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	run := func(network bool) sandbox.Result {
		t.Helper()
		r, err := b.Run(ctx, sandbox.Command{
			Args: []string{"sh", "-c", `curl -s "http://$1/"; echo; curl -s "http://$2/"; curl -s --noproxy '*' --max-time 3 "http://$1/" || echo no direct way`, "sh", open1, closed}, Workspace: t.TempDir(), Network: network,
		})
		must(t, err)
		return r
	}
	r := run(true)
	if !strings.HasPrefix(r.Stdout, "hello from open\nparley: the host "+closed+" may not be reached") || !strings.HasSuffix(r.Stdout, "no direct way\n") || !slices.Equal(r.Refused, []string{closed}) {
		t.Errorf("it gave %+v", r)
	}
	if r := run(false); strings.Contains(r.Stdout, "hello") || len(r.Refused) > 0 {
		t.Errorf("without the capability it gave %+v", r)
	}
	if len(asked) != 1 || <-asked != "open" {
		t.Error("other servers were asked than the one that is allowed")
	}
	whole := openBox(t, sandbox.Bubblewrap, func(c *sandbox.Config) { c.Network.Full = true })
	r, err := whole.Run(ctx, sandbox.Command{Args: []string{"curl", "-s", "http://" + closed}, Workspace: t.TempDir(), Network: true})
	if err != nil || r.Stdout != "hello from closed" {
		t.Errorf("with the whole network it gave %+v, %v", r, err)
	}
}

// A request that a mode can't enforce is refused. It never runs with less protection.
func TestUnenforceableRequestsAreRefused(t *testing.T) {
	openBox(t, sandbox.Landlock, func(*sandbox.Config) {})
	wrong := func(cfg sandbox.Config, key string) {
		t.Helper()
		_, err := sandbox.Open(t.Context(), cfg)
		setting, ok := errors.AsType[*sandbox.SettingError](err)
		if !ok || setting.Key != key || setting.Remedy == "" {
			t.Errorf("%s with %+v gave %v", cfg.Mode, cfg.Network, err)
		}
	}
	for _, network := range []sandbox.Network{{Full: true}, {Hosts: []string{"example.com"}}} {
		cfg := testConfig(sandbox.Landlock)
		cfg.Network = network
		wrong(cfg, "sandbox.network")
		t.Run("without bubblewrap", func(t *testing.T) {
			t.Setenv("PATH", t.TempDir())
			cfg.Mode = sandbox.Auto
			wrong(cfg, "sandbox.network")
			cfg.Mode = sandbox.Bubblewrap
			wrong(cfg, "sandbox.mode")
		})
	}
	cfg := testConfig(sandbox.None)
	cfg.Network = sandbox.Network{}
	wrong(cfg, "sandbox.network")
	cfg.Network.Full = true
	b, err := sandbox.Open(t.Context(), cfg)
	must(t, err)
	if _, err := b.Run(t.Context(), sandbox.Command{Args: []string{"true"}, Workspace: t.TempDir()}); !errors.Is(err, sandbox.ErrNoNetworkIsolation) {
		t.Errorf("without walls and without the capability it gave %v", err)
	}
	if r := runShell(t, b, t.TempDir(), `echo hi; echo "$TMPDIR"`); !strings.HasPrefix(r.Stdout, "hi\n") {
		t.Errorf("without walls it gave %+v", r)
	}
}

func TestAutoChoosesAWorkingMode(t *testing.T) {
	for _, mode := range []sandbox.Mode{sandbox.Bubblewrap, sandbox.Landlock} {
		openBox(t, mode, func(*sandbox.Config) {})
	}
	b, err := sandbox.Open(t.Context(), testConfig(sandbox.Auto))
	must(t, err)
	if b.Mode() != sandbox.Bubblewrap {
		t.Errorf("it took %s", b.Mode())
	}
	t.Setenv("PATH", t.TempDir())
	if b, err = sandbox.Open(t.Context(), testConfig(sandbox.Auto)); err != nil || b.Mode() != sandbox.Landlock {
		t.Errorf("without bubblewrap it took %v, %v", b, err)
	}
}

// With control groups, a command that far exceeds a limit is stopped at once, whenever it is measured. Without them, it
// is ended a little later.
func TestBombsInGroups(t *testing.T) {
	for _, mode := range []sandbox.Mode{sandbox.Bubblewrap, sandbox.Landlock, sandbox.None} {
		t.Run(string(mode), func(t *testing.T) {
			b := openBox(t, mode, func(c *sandbox.Config) { c.MemoryMB, c.TmpMB = 64, 8 })
			// Without namespaces, nothing ends all processes at once, and each takes long to start under the race
			// detector.
			if mode != sandbox.None && !testrace.Raced {
				for _, c := range excessiveCommands(false) {
					if r := runShell(t, b.WithoutGroups(), t.TempDir(), c.line, testProgram(t)); !c.endedFor(r) {
						t.Errorf("without groups %s ended with %d, %q %s: %.300s", c.line, r.ExitCode, r.Killed, r.Detail, r.Stderr)
					}
				}
			}
			if !b.Groups() {
				t.Skip("NOT TESTED: control groups of commands, which cannot be made here")
			}
			for _, c := range excessiveCommands(true) {
				if r := runShell(t, b, t.TempDir(), c.line, testProgram(t)); !c.endedFor(r) {
					t.Errorf("%s ended with %d, %q %s: %.300s", c.line, r.ExitCode, r.Killed, r.Detail, r.Stderr)
				}
			}
			// It ends before it was measured, and the reason is reported anyway.
			if r := runShell(t, b, t.TempDir(), `for i in $(seq 600); do sleep 10 & done 2>/dev/null`); r.Killed != sandbox.Processes {
				t.Errorf("it had 600 processes and ended with %d, %q %s", r.ExitCode, r.Killed, r.Detail)
			}
			wantNoGroups(t, b.Place())
		})
	}
}

// wantNoGroups waits until no command's group is left.
func wantNoGroups(t *testing.T, place cgroup.Place) {
	t.Helper()
	waitFor(t, "the groups to be removed", func() bool {
		for _, dir := range []string{place.Pids.Path, place.Memory.Path} {
			if left, _ := filepath.Glob(filepath.Join(dir, "parley-command-*")); dir != "" && len(left) > 0 {
				return false
			}
		}
		return true
	})
}

// A supervisor that is killed leaves processes and a group. The process that started it ends them, or the next one that
// starts.
func TestASupervisorThatIsKilled(t *testing.T) {
	for _, mode := range []sandbox.Mode{sandbox.Bubblewrap, sandbox.Landlock, sandbox.None} {
		t.Run(string(mode), func(t *testing.T) {
			b := openBox(t, mode, func(*sandbox.Config) {})
			if !b.Groups() {
				t.Skip("NOT TESTED: control groups of commands, which cannot be made here")
			}
			mark := "mark-" + t.Name() + time.Now().Format("150405.000000")
			started := make(chan struct{}, 1)
			ended := make(chan error, 1)
			before := children(t)
			go func() {
				_, err := b.Run(t.Context(), sandbox.Command{
					Args: []string{"sh", "-c", stubbornScript + "\necho up; sleep 1000", "sh", mark}, Workspace: t.TempDir(), Network: mode == sandbox.None,
					Output: func([]byte) { started <- struct{}{} },
				})
				ended <- err
			}()
			<-started
			for pid := range children(t) {
				if !before[pid] {
					must(t, unix.Kill(pid, unix.SIGKILL))
				}
			}
			if err := <-ended; err == nil {
				t.Error("it ended well")
			}
			if left := processesWith(mark); len(left) > 0 {
				t.Errorf("%d processes are left", len(left))
			}
			wantNoGroups(t, b.Place())
		})
	}
}

// If commands have no namespaces of their own, their temporary files are in a folder of this machine. It is removed
// after the command's supervisor was killed; the folder of another running command stays.
func TestTemporaryFilesGoWithAKilledSupervisor(t *testing.T) {
	for _, mode := range []sandbox.Mode{sandbox.Landlock, sandbox.None} {
		t.Run(string(mode), func(t *testing.T) {
			b := openBox(t, mode, func(*sandbox.Config) {})
			// start runs a command until its supervisor is killed or stop is called, and returns its folder.
			start := func() (folder string, supervisors []int, stop func() error) {
				before := children(t)
				ctx, cancel := context.WithCancel(t.Context())
				said, ended := make(chan string, 1), make(chan error, 1)
				go func() {
					_, err := b.Run(ctx, sandbox.Command{
						Args:      []string{"sh", "-c", `echo secret >"$TMPDIR/file"; echo "$TMPDIR"; exec sleep 1000`},
						Workspace: t.TempDir(), Network: mode == sandbox.None, Output: func(raw []byte) { said <- string(raw) },
					})
					ended <- err
				}()
				select {
				case text := <-said:
					folder = strings.TrimSpace(text)
				case err := <-ended:
					t.Fatalf("the command ended before it said where its temporary files are: %v", err)
				}
				for pid := range children(t) {
					if !before[pid] {
						supervisors = append(supervisors, pid)
					}
				}
				return folder, supervisors, func() error { cancel(); return <-ended }
			}
			stays, _, stop := start()
			goes, supervisors, killed := start()
			for _, pid := range supervisors {
				must(t, unix.Kill(pid, unix.SIGKILL))
			}
			waitFor(t, "the folder to be removed", func() bool { _, err := os.Stat(goes); return errors.Is(err, fs.ErrNotExist) })
			if err := killed(); err == nil {
				t.Error("the command whose supervisor was killed ended well")
			}
			if _, err := os.Stat(filepath.Join(stays, "file")); err != nil {
				t.Errorf("the files of the other command: %v", err)
			}
			if err := stop(); !errors.Is(err, context.Canceled) {
				t.Errorf("the other command ended with %v", err)
			}
			if _, err := os.Stat(stays); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the folder of the other command, when it had ended: %v", err)
			}
		})
	}
}

// If the process that runs commands is killed together with their supervisors, the next one
// removes their temporary files when it starts.
func TestTemporaryFilesOfADeadProcessGoAtTheNextStart(t *testing.T) {
	for _, mode := range []sandbox.Mode{sandbox.Landlock, sandbox.None} {
		t.Run(string(mode), func(t *testing.T) {
			openBox(t, mode, func(*sandbox.Config) {}) // or this machine cannot
			workspace := t.TempDir()
			told := filepath.Join(workspace, "told")
			cmd := exec.Command(testProgram(t), "attempt", "worker", string(mode), workspace, `echo secret >"$TMPDIR/file"; echo "$TMPDIR" >told.new; mv told.new told; exec sleep 1000`)
			must(t, cmd.Start())
			waitFor(t, "the command to run", func() bool { _, err := os.Stat(told); return err == nil })
			raw, err := os.ReadFile(told)
			must(t, err)
			folder := strings.TrimSpace(string(raw))
			must(t, unix.Kill(cmd.Process.Pid, unix.SIGSTOP)) // it must not see how its supervisors end
			for pid := range childrenOf(t, cmd.Process.Pid) {
				must(t, unix.Kill(pid, unix.SIGKILL))
			}
			must(t, cmd.Process.Kill())
			_ = cmd.Wait() // it was killed
			// Another process on this machine may start meanwhile and remove the folder too.
			waitFor(t, "the next start to remove the folder", func() bool {
				openBox(t, mode, func(*sandbox.Config) {})
				_, err := os.Stat(folder)
				return errors.Is(err, fs.ErrNotExist)
			})
		})
	}
}

// children returns the processes that this one has started.
func children(t *testing.T) map[int]bool {
	t.Helper()
	return childrenOf(t, os.Getpid())
}

// childrenOf returns the processes that a process has started.
func childrenOf(t *testing.T, parent int) map[int]bool {
	t.Helper()
	pids := map[int]bool{}
	names, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	must(t, err)
	for _, name := range names {
		raw, _ := os.ReadFile(name) // the thread may have ended
		for field := range strings.FieldsSeq(string(raw)) {
			pids[parseNumber(field)] = true
		}
	}
	return pids
}
