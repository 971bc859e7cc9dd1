package operation

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"parley/cmd/parley/parleytest"
)

// stopAt starts a command that stops itself at a crashpoint, and waits until it has stopped.
func stopAt(t *testing.T, cmd *exec.Cmd, point string) {
	t.Helper()
	cmd.Env = append(cmd.Env, "PARLEY_STOP_AT="+point)
	parleytest.Must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it may have ended
	parleytest.WaitFor(t, "the process to stop itself", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
		if err != nil {
			return false
		}
		_, state, _ := strings.Cut(string(stat), ") ")
		return strings.HasPrefix(state, "T")
	})
}

// interrupt sends SIGINT to a command that has stopped itself, and waits until it has ended.
func interrupt(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	parleytest.Must(t, cmd.Process.Signal(syscall.SIGINT))
	parleytest.Must(t, cmd.Process.Signal(syscall.SIGCONT))
	_ = cmd.Wait() // the command exits with an error, because it was interrupted
}

// shownBy runs a command on a terminal until it ends, and returns all that the terminal was sent. The command must show
// the words in last at its end.
func shownBy(t *testing.T, cmd *exec.Cmd, last string) string {
	t.Helper()
	s := parleytest.TakeSeat(t, cmd)
	s.Ends()
	parleytest.WaitFor(t, "the last words", func() bool { return strings.Contains(s.Shown.String(), last) })
	if strings.ContainsAny(s.Content(), "█░") {
		t.Errorf("a bar is left on\n%s", s.Content())
	}
	return s.Shown.String()
}

// isSubsequence reports whether a text contains the parts in that order.
func isSubsequence(text string, parts ...string) bool {
	for _, part := range parts {
		_, rest, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = rest
	}
	return true
}

// On a terminal, parley migrate shows its progress. If it is interrupted, it says what to do, and continues the next
// time.
func TestMigrateShowsHowFarItIs(t *testing.T) {
	t.Parallel()
	m := newMoving(t)
	shown := shownBy(t, m.Command("migrate", "--to", m.fleet.File), "moved to")
	if !isSubsequence(shown, "░ logs: 0 % copied", "the logs are taken", "█", " book", "█", " messages", "moved to") {
		t.Errorf("the terminal got %q", shown)
	}
	m.arrived()
}

func TestMigrateInterrupted(t *testing.T) {
	t.Parallel()
	for at, want := range map[string]string{"message/8": "Run the same command again, and it goes on", "opened": "nothing has changed"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			m := newMoving(t)
			cmd := m.Command("migrate", "--to", m.fleet.File)
			var said bytes.Buffer
			cmd.Stderr = &said
			stopAt(t, cmd, at)
			interrupt(t, cmd)
			if code := cmd.ProcessState.ExitCode(); code != parleytest.ExitFailed || !strings.Contains(said.String(), want) || strings.ContainsAny(said.String(), "█░") {
				t.Fatalf("interrupted, it ends with %d, saying %s", code, &said)
			}
			stdout, stderr, code := m.migrate()
			if code != parleytest.ExitDone || strings.Contains(stderr, "the migration goes on") != (at != "opened") {
				t.Fatalf("exit code %d, saying %s%s", code, stdout, stderr)
			}
			m.arrived()
		})
	}
}

// On a terminal, parley backup shows its progress, but not with JSON output.
func TestBackupShowsHowFarItIs(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "")
	w.Serve()
	w.Telegram.Say(2, 2, "hello")
	w.WaitSaid(2, 1)
	file := filepath.Join(t.TempDir(), "backup")
	shown := shownBy(t, w.Command("backup", file), "can be restored")
	if !isSubsequence(shown, "░ databases: 0 of ", "█", " files: ", "█", " reading it back: ", "can be restored") {
		t.Errorf("the terminal got %q", shown)
	}
	if shown := shownBy(t, w.Command("--json", "backup", file), "sha256"); strings.ContainsAny(shown, "█░") {
		t.Errorf("as JSON, the terminal got %q", shown)
	}
}

// A backup that is interrupted or killed leaves an earlier backup unchanged. Its partial files are gone once the next
// backup is done.
func TestBackupInterrupted(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "")
	p := w.Serve()
	w.Telegram.Say(2, 2, "hello")
	w.WaitSaid(2, 1)
	p.Stop()
	dir := t.TempDir()
	file := filepath.Join(dir, "backup")
	if _, errs, code := w.Run("backup", file); code != parleytest.ExitDone {
		t.Fatalf("exit code %d, %s", code, errs)
	}
	before, err := os.ReadFile(file)
	parleytest.Must(t, err)
	others := func() (names []string) {
		entries, err := os.ReadDir(dir)
		parleytest.Must(t, err)
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return slices.DeleteFunc(names, func(name string) bool { return name == "backup" })
	}
	cmd := w.Command("backup", file)
	var said bytes.Buffer
	cmd.Stderr = &said
	stopAt(t, cmd, "backup:files")
	if len(others()) != 1 {
		t.Errorf("while it is written, there are %q", others())
	}
	interrupt(t, cmd)
	if code := cmd.ProcessState.ExitCode(); code != parleytest.ExitFailed || !strings.Contains(said.String(), "begins anew") {
		t.Errorf("interrupted, it ends with %d, saying %s", code, &said)
	}
	if len(others()) != 0 {
		t.Errorf("the interrupted backup has left %q", others())
	}
	killed := w.Command("backup", file)
	stopAt(t, killed, "backup:files")
	beside := w.Command("backup", filepath.Join(dir, "beside"))
	stopAt(t, beside, "backup:files")
	parleytest.Must(t, killed.Process.Kill())
	_ = killed.Wait() // it was killed
	if after, err := os.ReadFile(file); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the earlier backup has changed, %v", err)
	}
	if _, errs, code := w.Run("backup", file); code != parleytest.ExitDone {
		t.Fatalf("exit code %d, %s", code, errs)
	}
	if len(others()) != 1 {
		t.Errorf("beside a backup that is being written, there are %q", others())
	}
	parleytest.Must(t, beside.Process.Signal(syscall.SIGCONT))
	parleytest.Must(t, beside.Wait())
	if got := others(); len(got) != 1 || got[0] != "beside" {
		t.Errorf("in the end there are %q", got)
	}
}

// On a terminal, parley forget shows the server's progress.
func TestForgetShowsHowFarItIs(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "")
	w.Serve()
	w.Telegram.Say(2, 2, "hello")
	w.WaitSaid(2, 1)
	shown := shownBy(t, w.Command("forget", "--yes", "--user", "telegram:2"), "Erased: ")
	if !isSubsequence(shown, "░ beginning", "Erased: ") {
		t.Errorf("the terminal got %q", shown)
	}
}
