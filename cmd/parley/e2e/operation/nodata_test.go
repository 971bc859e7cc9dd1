package operation

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"parley/channels/telegram/telegramtest"
	"parley/cmd/parley/config"
	"parley/cmd/parley/data/home"
	"parley/cmd/parley/parleytest"
	"parley/sessions/sqldb/sqldbtest"
)

// A newcomer is a user of the real program whose home directory is empty.
type newcomer struct {
	t    *testing.T
	dir  string // $HOME
	cwd  string
	env  []string
	uid  int // the user as whom the program runs; 0 means the user who runs the tests
	exec string
}

func newNewcomer(t *testing.T, env ...string) *newcomer {
	t.Helper()
	path, err := parleytest.Binary()
	if err != nil {
		t.Fatal(err)
	}
	return &newcomer{t: t, dir: t.TempDir(), cwd: t.TempDir(), env: env, exec: path}
}

func (n *newcomer) run(args ...string) (out, errs string, code int) {
	n.t.Helper()
	cmd := exec.Command(n.exec, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + n.dir, "TMPDIR=" + os.TempDir()}, n.env...)
	cmd.Dir = n.cwd
	if n.uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(n.uid), Gid: uint32(n.uid)}}
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			n.t.Fatal(err)
		}
		code = exit.ExitCode()
	}
	return stdout.String(), stderr.String(), code
}

// files returns the paths of the files below a directory.
func (n *newcomer) files(dir string) (paths []string) {
	n.t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if path != dir {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		n.t.Fatal(err)
	}
	return paths
}

var reading = [][]string{
	{"pairing", "list"}, {"pairing", "approve", "ABCDEFGH"}, {"pairing", "revoke", "telegram:1"}, {"chats"}, {"status"}, {"--json", "status"}, {"why", "telegram:1"},
	{"sessions"}, {"sessions", "main:telegram:1"}, {"dead-letters"}, {"dead-letters", "show", "x"}, {"dead-letters", "drop", "x"},
	{"dead-letters", "replay", "--all"}, {"forget", "--yes", "--user", "telegram:1"},
}

// Commands that only read create nothing in an empty home, and say where they have looked.
func TestReadingCreatesNothing(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	for _, args := range reading {
		out, errs, code := n.run(args...)
		if code != parleytest.ExitFailed || out != "" {
			t.Errorf("%v: exit code %d, printing %q", args, code, out)
		}
		for _, want := range []string{"the home " + n.dir + "/.parley has no data yet", "Parley found no configuration file", "$PARLEY_CONFIG", n.dir + "/.parley/parley.toml", "--config", "--home"} {
			if !strings.Contains(errs, want) {
				t.Errorf("%v says %q, want %q", args, errs, want)
			}
		}
	}
	file := filepath.Join(n.cwd, "bot.toml")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errs, _ := n.run("--config", file, "status"); !strings.Contains(errs, "the configuration is "+file) {
		t.Errorf("with a configuration it says %q", errs)
	}
	for _, args := range [][]string{{"send", "--to", "telegram:1", "hello"}, {"pairing", "owner"}} {
		if _, errs, code := n.run(args...); code != parleytest.ExitFailed && code != parleytest.ExitUsage || !strings.Contains(errs, "no channel is configured") || !strings.Contains(errs, "Parley found no configuration file") {
			t.Errorf("%v: exit code %d, saying %q", args, code, errs)
		}
	}
	if made := n.files(n.dir); len(made) > 0 {
		t.Errorf("they created %q", made)
	}
}

// If the database of a home is missing, commands that only read do not create a new one.
func TestReadingMakesNoMissingPart(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	if _, errs, code := n.run("chat", "-m", "hello"); code != parleytest.ExitDone {
		t.Fatalf("chat: exit code %d, %s", code, errs)
	}
	database := filepath.Join(n.dir, ".parley", home.StoreFile)
	if err := os.Remove(database); err != nil {
		t.Fatal(err)
	}
	for _, args := range reading {
		if _, errs, code := n.run(args...); code != parleytest.ExitFailed || !strings.Contains(errs, "has no") {
			t.Errorf("%v: exit code %d, saying %q", args, code, errs)
		}
	}
	if _, err := os.Stat(database); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the database was made: %v", err)
	}
}

// In the home of a fleet's process, a command without the fleet's configuration fails and creates no database, because
// a database there would keep serve from starting.
func TestFleetsHomeWithoutItsConfiguration(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	dir := filepath.Join(n.dir, ".parley")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(n.cwd, "fleet.toml")
	if err := os.WriteFile(file, []byte("[bus]\nurl = \"redis://u:hunter2@127.0.0.1:1\"\n[store]\nurl = \"postgres://u:hunter2@127.0.0.1:1/d\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := loadConfig(config.Options{File: file, Home: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := home.NoteWhereDataIs(cfg); err != nil {
		t.Fatal(err)
	}
	for _, args := range append([][]string{{"chat", "-m", "hello"}, {"serve"}}, reading...) {
		_, errs, code := n.run(args...)
		if code != parleytest.ExitConfig || !strings.Contains(errs, "127.0.0.1:1/d") || !strings.Contains(errs, "--config "+file) || strings.Contains(errs, "hunter2") {
			t.Errorf("%v: exit code %d, saying %q", args, code, errs)
		}
	}
	for _, path := range n.files(dir) {
		if strings.HasSuffix(path, ".db") {
			t.Errorf("%s was made", path)
		}
	}
	if err := home.CheckData(cfg); err != nil {
		t.Errorf("with its own configuration: %v", err)
	}
}

// A process of a fleet still starts after commands ran in its home without the fleet's configuration.
func TestFleetServesAfterCommandsWithoutItsConfiguration(t *testing.T) {
	t.Parallel()
	redis := os.Getenv("PARLEY_TEST_REDIS_URL")
	if redis == "" {
		t.Skip("there is no PARLEY_TEST_REDIS_URL: run it as `.ci/servers go test …`, or with make test")
	}
	w := parleytest.New(t, parleytest.EchoModel, fmt.Sprintf("[bus]\nurl = %q\nprefix = %q\n[store]\nurl = %q\n", redis, "test-"+rand.Text(), sqldbtest.New(t)))
	for n := range 2 {
		p := w.Serve()
		w.Telegram.Say(2, 2, "hello")
		w.WaitSaid(2, n+1)
		parleytest.Must(t, p.Cmd.Process.Signal(syscall.SIGTERM))
		parleytest.Must(t, <-p.Ended)
		lost := newNewcomer(t, "PARLEY_HOME="+w.Home)
		for _, args := range append([][]string{{"chat", "-m", "hello"}, {"send", "--to", "telegram:2", "x"}, {"pairing", "owner"}}, reading...) {
			if _, errs, code := lost.run(args...); code != parleytest.ExitConfig || !strings.Contains(errs, "--config "+w.File) {
				t.Errorf("%v: exit code %d, saying %q", args, code, errs)
			}
		}
	}
}

// Commands that ignore a ./parley.toml say so.
func TestLocalConfigurationThatIsNotRead(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	local := filepath.Join(n.cwd, "parley.toml")
	if err := os.WriteFile(local, []byte("[model]\nname = \"demo\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"chat", "-m", "hello"}, {"send", "--to", "telegram:1", "x"}, {"pairing", "list"}, {"pairing", "owner"}, {"status"}} {
		if out, errs, _ := n.run(args...); !strings.Contains(errs, "Parley didn't read "+local) || !strings.Contains(errs, "--config parley.toml") || strings.Contains(out, "didn't read") {
			t.Errorf("%v says %q", args, errs)
		}
	}
	for _, args := range [][]string{{"--config", "parley.toml", "status"}, {"config", "check"}, {"doctor"}} {
		if _, errs, _ := n.run(args...); strings.Contains(errs, "Parley didn't read") {
			t.Errorf("%v says %q", args, errs)
		}
	}
	n.env = append(n.env, "PARLEY_CONFIG="+local)
	if _, errs, _ := n.run("status"); strings.Contains(errs, "Parley didn't read") {
		t.Errorf("with $PARLEY_CONFIG it says %q", errs)
	}
}

// Without a server, the commands about people open the home themselves. A code for the owner creates the home.
func TestPeopleWithoutAServer(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	file := filepath.Join(n.cwd, "bot.toml")
	if err := os.WriteFile(file, []byte("[channels.telegram]\nbot_token = \"1:x\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		out  string
	}{
		{[]string{"pairing", "owner"}, "/start "},
		{[]string{"pairing", "owner", "telegram"}, "/start "},
		{[]string{"pairing", "list"}, "Nobody is paired, and nobody is asking to be.\n"},
		{[]string{"--json", "pairing", "list"}, "[]\n"},
		{[]string{"chats"}, "Nobody has talked to the bot yet.\n"},
		{[]string{"--json", "chats"}, "[]\n"},
	} {
		if out, errs, code := n.run(append([]string{"--config", file}, c.args...)...); code != parleytest.ExitDone || !strings.Contains(out, c.out) {
			t.Errorf("%v: exit code %d, saying %q %q, want %q", c.args, code, out, errs, c.out)
		}
	}
	for _, c := range []struct {
		args []string
		errs string
	}{
		{[]string{"pairing", "approve", "ABCDEFGH"}, `no request has the code "ABCDEFGH"`},
		{[]string{"pairing", "revoke", "telegram:1/2"}, `"telegram:1/2" isn't paired`},
	} {
		if out, errs, code := n.run(append([]string{"--config", file}, c.args...)...); code != parleytest.ExitFailed || out != "" || !strings.Contains(errs, c.errs) {
			t.Errorf("%v: exit code %d, saying %q %q, want %q", c.args, code, out, errs, c.errs)
		}
	}
}

// A missing secret does not stop a command that has no use for it.
func TestCommandsNeedNoSecretThatTheyDoNotUse(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	if _, errs, code := n.run("chat", "-m", "hello"); code != parleytest.ExitDone {
		t.Fatalf("chat: exit code %d, %s", code, errs)
	}
	file := filepath.Join(n.cwd, "bot.toml")
	text := `[channels.telegram]
bot_token = "${file:/nonexistent/telegram}"
[channels.slack]
bot_token = "${NO_SUCH_VARIABLE}"
app_token = "${NO_SUCH_VARIABLE}"
[model]
api_key = "${file:/nonexistent/model}"
[targets]
oncall = ["telegram:1"]
[webhooks.github]
secret = "${file:/nonexistent/hook}"
to = "oncall"
[tokens.ci]
token = "${file:/nonexistent/ci}"
may = ["send"]
[tokens.cd]
token = "${file:/nonexistent/cd}"
may = ["send"]
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"status"}, {"sessions"}, {"pairing", "list"}, {"chats"}, {"dead-letters"}, {"forget", "--yes", "--user", "telegram:1"},
		{"backup", filepath.Join(n.cwd, "backup")},
	} {
		if _, errs, code := n.run(append([]string{"--config", file}, args...)...); code != parleytest.ExitDone {
			t.Errorf("%v: exit code %d, saying %q", args, code, errs)
		}
	}
	for _, args := range [][]string{{"serve"}, {"send", "--to", "oncall", "x"}, {"config", "check"}} {
		if _, errs, code := n.run(append([]string{"--config", file}, args...)...); code != parleytest.ExitConfig || !strings.Contains(errs, "/nonexistent/telegram") {
			t.Errorf("%v: exit code %d, saying %q", args, code, errs)
		}
	}
}

// After root has run commands in the home of a service, the service's user can still use every file.
func TestRootInAnothersHome(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can act in another's home: run it as root")
	}
	const uid = 64321
	open := func(path string) { // the other user has to reach the program and the home
		for ; path != os.TempDir() && path != "/"; path = filepath.Dir(path) {
			if err := os.Chmod(path, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	tg := telegramtest.New(parleytest.Token, "parleybot")
	api, err := tg.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tg.Close()
	n := newNewcomer(t)
	open(n.exec)
	open(n.dir)
	open(n.cwd)
	file := filepath.Join(n.cwd, "bot.toml")
	if err := os.WriteFile(file, fmt.Appendf(nil, "[http]\nlisten = \"\"\n[model]\nname = \"demo\"\n[channels.telegram]\nbot_token = %q\napi_url = %q\n", parleytest.Token, api), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chown(file, uid, uid), os.Chown(n.dir, uid, uid)); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(n.dir, ".parley")
	of := func(when string) {
		t.Helper()
		for _, path := range n.files(n.dir) {
			info, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			if got := info.Sys().(*syscall.Stat_t).Uid; got != uid {
				t.Errorf("%s, %s belongs to %d", when, path, got)
			}
		}
	}
	must := func(as int, args ...string) {
		t.Helper()
		n.uid = as
		if out, errs, code := n.run(append([]string{"--config", file}, args...)...); code != parleytest.ExitDone {
			t.Errorf("%v as %d: exit code %d, %s%s", args, as, code, out, errs)
		}
		of(fmt.Sprintf("after %v as %d", args, as))
	}
	must(0, "pairing", "owner") // creates the home
	must(0, "chat", "-m", "write hello to notes.txt")
	must(uid, "chat", "-m", "write hello to notes.txt")
	for _, args := range [][]string{{"chat", "--session", "b", "-m", "write hello to docs/notes.txt"}, {"send", "--timeout", "1s", "--to", "telegram:1", "x"}, {"status"}, {"pairing", "list"}, {"chats"}, {"sessions"}} {
		must(0, args...)
	}
	must(uid, "chat", "--session", "b", "-m", "write more to docs/notes.txt")
	// For existing damage, the error contains the path and the remedy.
	root := filepath.Join(dir, "workspaces", "main")
	if err := os.Chown(root, 0, 0); err != nil {
		t.Fatal(err)
	}
	n.uid = uid
	_, errs, code := n.run("--config", file, "chat", "--session", "c", "-m", "write hello to notes.txt")
	if code != parleytest.ExitConfig || !strings.Contains(errs, filepath.Join(dir, "workspaces")) || !strings.Contains(errs, fmt.Sprintf("chown -R %d", uid)) {
		t.Errorf("what this user may not use is told as %q", errs)
	}
	out, _, code := n.run("--config", file, "doctor")
	if code != parleytest.ExitFailed || !strings.Contains(out, root) || !strings.Contains(out, "chown -R") {
		t.Errorf("doctor: exit code %d, saying %q", code, out)
	}
}
