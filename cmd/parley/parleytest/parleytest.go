// Package parleytest runs the real program as a child process, between a fake Telegram server and a scripted model server.
//
// It builds the program once for a package's tests, with the crashpoints at which a test
// may kill it. redis.go starts a Redis that a test may kill, too.
package parleytest

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"parley/agent/agenttest"
	"parley/channels/telegram/telegramtest"
	_ "parley/sessions/sqldb" // the driver of the databases that Count queries
	"parley/tools/testlog"
)

// Binary builds the program and returns its path.
var Binary = sync.OnceValues(func() (string, error) {
	// go test doesn't know which files the program is built from, and would use an old result for a changed
	// program. Because of this variable, which .ci/servers sets to a new value, no result is reused.
	_ = os.Getenv("PARLEY_TEST_RUN")
	dir, err := os.MkdirTemp("", "parley-e2e-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "parley")
	// The build cache keeps a copy of what "go run" links: the next package's tests get it at once.
	out, err := exec.Command("go", "run", "-buildvcs=false", "-tags", "chaos", "-exec", "cp", "parley/cmd/parley", path).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return path, os.Chmod(path, 0o755) // regardless of the umask: root's commands run it as another user
})

// The names and times that the tests' bots share.
const (
	// Token is the bot's token for Telegram, and Owner the person who owns the bot there.
	Token = "4242:test-token-of-the-bot-000000000000000"
	Owner = 1
	// Patience is how long a test waits for something before it fails.
	Patience = 2 * time.Minute
)

// A World is what surrounds the program during a test: a fake Telegram, a scripted model server, and the directory
// of the bot's data.
type World struct {
	T        *testing.T
	Telegram *telegramtest.Server
	Model    *agenttest.Server
	Home     string
	File     string
	Env      []string // variables that each command gets
}

// New makes a world in which user 1 owns the bot and the users 2 to 999 may talk to it. more is appended to the
// configuration file.
func New(t *testing.T, script agenttest.Script, more string) *World {
	t.Helper()
	w := &World{T: t, Telegram: telegramtest.New(Token, "parleybot"), Model: agenttest.New(script), Home: t.TempDir()}
	api, err := w.Telegram.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Telegram.Close() })
	var guests []string
	for id := 2; id < 1000; id++ {
		guests = append(guests, fmt.Sprint(id))
	}
	w.File = filepath.Join(t.TempDir(), "parley.toml")
	text := fmt.Sprintf("[model]\nname = \"scripted\"\nbase_url = %q\napi_key = \"none\"\n\n[channels.telegram]\nintroduce = \"never\"\nbot_token = %q\napi_url = %q\naccess = \"list\"\nallow_from = [%s]\nowners = [1]\nrate_limit = \"none\"\n[http]\nlisten = \"\"\n%s",
		w.Model.Start(t), Token, api, strings.Join(guests, ", "), more)
	if err := os.WriteFile(w.File, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return w
}

// Command returns a command that runs the program with these arguments in this world's
// home.
func (w *World) Command(args ...string) *exec.Cmd {
	w.T.Helper()
	path, err := Binary()
	if err != nil {
		w.T.Fatal(err)
	}
	cmd := exec.Command(path, append([]string{"--home", w.Home, "--config", w.File}, args...)...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.Home, "TMPDIR=" + os.TempDir()}, w.Env...)
	return cmd
}

// A Process is a running "parley serve".
type Process struct {
	w      *World
	Cmd    *exec.Cmd
	Stderr *SyncBuffer
	Ended  chan error
}

// Serve starts "parley serve"; env is added to its environment.
func (w *World) Serve(env ...string) *Process {
	w.T.Helper()
	p := w.process("serve")
	p.Cmd.Env = append(p.Cmd.Env, env...)
	return p.start()
}

// ServeAs starts "parley serve" with a role, as one process of a fleet, in a home directory of its own; env is added to
// its environment.
func (w *World) ServeAs(role string, env ...string) *Process {
	w.T.Helper()
	own := *w
	own.Home = w.T.TempDir()
	p := own.process("serve", "--role", role)
	p.Cmd.Env = append(p.Cmd.Env, env...)
	return p.start()
}

// process returns a process that will run the program with these arguments once it is started.
func (w *World) process(args ...string) *Process {
	w.T.Helper()
	return &Process{w: w, Cmd: w.Command(args...), Stderr: &SyncBuffer{}, Ended: make(chan error, 1)}
}

// start starts the process, which ends with the test.
func (p *Process) start() *Process {
	w := p.w
	w.T.Helper()
	p.Cmd.Stderr = p.Stderr
	if err := p.Cmd.Start(); err != nil {
		w.T.Fatal(err)
	}
	go func() { p.Ended <- p.Cmd.Wait() }()
	w.T.Cleanup(func() {
		_ = p.Cmd.Process.Kill() // it may have ended
		if w.T.Failed() {
			w.T.Logf("serve said:\n%s", p.Stderr.Tail())
		}
	})
	return p
}

// Kill ends the process with SIGKILL.
func (p *Process) Kill() {
	p.w.T.Helper()
	if err := p.Cmd.Process.Kill(); err != nil {
		p.w.T.Fatal(err)
	}
	if err := <-p.Ended; err == nil {
		p.w.T.Error("serve had ended before it was killed")
	}
}

// Stop waits until no message waits on the bus, and then ends the server with SIGTERM.
func (p *Process) Stop() {
	p.w.T.Helper()
	WaitFor(p.w.T, "serve to be up", func() bool { return strings.Contains(p.Stderr.String(), `"serving"`) })
	WaitFor(p.w.T, "the bus to be empty", func() bool { return p.w.Count("sessions.db", "SELECT count(*) FROM message") == 0 })
	if err := p.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.w.T.Fatal(err)
	}
	if err := <-p.Ended; err != nil {
		p.w.T.Fatalf("serve ended with %v", err)
	}
}

// HasEnded reports whether the process has ended.
func (p *Process) HasEnded() bool {
	select {
	case err := <-p.Ended:
		p.Ended <- err
		return true
	default:
		return false
	}
}

// WaitServing waits until the server accepts requests, so that the next command finds it and does not open the home
// itself.
func (p *Process) WaitServing() {
	p.w.T.Helper()
	WaitFor(p.w.T, "serve to be up", func() bool { return strings.Contains(p.Stderr.String(), `"serving"`) })
}

// Count returns the number that a query to one of the home's databases returns.
func (w *World) Count(file, query string) int {
	w.T.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(w.Home, file)+"?mode=ro&_pragma=busy_timeout(5000)")
	if err != nil {
		w.T.Fatal(err)
	}
	defer db.Close()
	var n sql.NullInt64
	if err := db.QueryRow(query).Scan(&n); err != nil {
		w.T.Fatal(err)
	}
	return int(n.Int64)
}

// WaitKilled waits until the process has killed itself at a crashpoint.
func (p *Process) WaitKilled() {
	p.w.T.Helper()
	select {
	case err := <-p.Ended:
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			p.w.T.Fatalf("serve ended with %v, want it killed", err)
		}
	case <-time.After(Patience):
		p.w.T.Fatal("serve was not killed: the point was not passed")
	}
}

// WaitSaid waits until the bot has sent n messages to a chat, and returns their texts.
func (w *World) WaitSaid(chat int64, n int) []string {
	w.T.Helper()
	ctx, cancel := context.WithTimeout(w.T.Context(), Patience)
	defer cancel()
	sent, err := w.Telegram.WaitSent(ctx, chat, n)
	if err != nil {
		w.T.Fatalf("chat %d has %q, want %d messages: %v", chat, Texts(sent), n, err)
	}
	return Texts(sent)
}

// Texts returns the texts of messages.
func Texts(sent []telegramtest.Message) []string {
	var all []string
	for _, m := range sent {
		all = append(all, m.Text)
	}
	return all
}

// Run runs the program until it exits, and returns its output and exit code.
func (w *World) Run(args ...string) (stdout, stderr string, code int) {
	w.T.Helper()
	cmd := w.Command(args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			w.T.Fatal(err)
		}
		code = exit.ExitCode()
	}
	return out.String(), errs.String(), code
}

// WaitFor waits until a condition is true.
func WaitFor(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Patience); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// A SyncBuffer stores the output of a process, which tests may read while the process writes.
type SyncBuffer struct{ testlog.Buffer }

// Tail returns the end of the output, short enough for a log.
func (s *SyncBuffer) Tail() string {
	all := s.String()
	return all[max(0, len(all)-4000):]
}

// InterruptedSends returns how many sends were interrupted, so that it is unknown whether they arrived. For each of
// these, one message more than expected may have arrived.
func (w *World) InterruptedSends() int {
	w.T.Helper()
	return w.Count("sessions.db", "SELECT sum(interrupted) FROM parts")
}

// WaitBooked waits until the book knows the platform's id for an answer. A test sees the answer on the platform a
// moment before that, when a reaction to it would refer to an unknown message.
func (w *World) WaitBooked(id string) {
	w.T.Helper()
	WaitFor(w.T, "the book to know the answer", func() bool {
		return w.Count("sessions.db", "SELECT count(*) FROM parts WHERE platform_id = '"+id+"'") > 0
	})
}

// FilesWith returns the names of the files below dir that contain a text.
func FilesWith(t *testing.T, dir, text string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil // a program that is running at the same time has removed it
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		defer f.Close()
		all, err := io.ReadAll(f)
		if bytes.Contains(all, []byte(text)) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Main runs a package's tests, and removes the program that was built for them.
func Main(m *testing.M) int {
	code := m.Run()
	if path, err := Binary(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path)) // a temporary directory
	}
	return code
}
