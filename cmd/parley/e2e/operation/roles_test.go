package operation

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/cmd/parley/config"
	"parley/cmd/parley/data/home"
	"parley/cmd/parley/data/migrate"
	"parley/cmd/parley/parleytest"
	"parley/sessions/sqldb/sqldbtest"
)

// If a database or the model server is unavailable at the start, serve exits with a code that allows a restart, because
// the configuration is not wrong. The error still names the line of the address.
func TestWhatIsAwayAtTheStart(t *testing.T) {
	t.Parallel()
	const postgres = "[store]\nurl = \"postgres://u:hunter2@127.0.0.1:1/d\"\n"
	for _, c := range []struct{ text, want string }{
		{postgres, "parley.toml:2: store.url: "},
		{postgres + "[bus]\nurl = \"redis://:hunter2@127.0.0.1:1\"\n", "parley.toml:4: bus.url: "},
		{"[model]\nbase_url = \"http://127.0.0.1:1/v1\"\n", "model.name: "},
	} {
		w := parleytest.New(t, parleytest.EchoModel, "")
		if err := os.WriteFile(w.File, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, stderr, code := w.Run("serve")
		if code != parleytest.ExitFailed || !strings.Contains(stderr, c.want) || strings.Contains(stderr, "hunter2") {
			t.Errorf("exit code %d, saying %q, want %q", code, stderr, c.want)
		}
	}
}

// Commands that only read work over a fleet from a home without a server, and do not create the home.
func TestCommandsOverAFleet(t *testing.T) {
	t.Parallel()
	redis := os.Getenv("PARLEY_TEST_REDIS_URL")
	if redis == "" {
		t.Skip("there is no PARLEY_TEST_REDIS_URL: run it as `.ci/servers go test …`, or with make test")
	}
	w := parleytest.New(t, parleytest.EchoModel, fmt.Sprintf("[bus]\nurl = %q\nprefix = %q\n[store]\nurl = %q\n", redis, "test-"+rand.Text(), sqldbtest.New(t)))
	p := w.Serve()
	w.Telegram.Say(2, 2, "hello")
	w.WaitSaid(2, 1)
	if !strings.Contains(p.Stderr.String(), "other workers do not see them") {
		t.Error("serve does not say that its workspaces are its own")
	}
	elsewhere := *w
	elsewhere.Home = t.TempDir()
	parleytest.Must(t, os.Remove(elsewhere.Home))
	for _, args := range [][]string{{"status"}, {"sessions"}, {"pairing", "list"}, {"chats"}, {"dead-letters"}} {
		if _, stderr, code := elsewhere.Run(args...); code != parleytest.ExitDone {
			t.Errorf("%v: exit code %d, saying %q", args, code, stderr)
		}
	}
	if _, err := os.Stat(elsewhere.Home); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("who only looks has made a home: %v", err)
	}
	parleytest.Must(t, os.Mkdir(elsewhere.Home, 0o700))
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"status"}, "the whole fleet"},
		{[]string{"sessions"}, "main:telegram:2"},
		{[]string{"dead-letters"}, "Parley hasn't given up on any messages."},
		{[]string{"why", "telegram:2"}, "It was answered."},
		{[]string{"why", "main:telegram:2"}, "was sent to telegram:2 as"},
		{[]string{"--json", "dead-letters", "list"}, "[]\n"},
		{[]string{"backup", filepath.Join(elsewhere.Home, "backup")}, "files"},
	} {
		if out, stderr, code := elsewhere.Run(c.args...); code != parleytest.ExitDone || !strings.Contains(out, c.want) {
			t.Errorf("%v: exit code %d, saying %q %q, want %q", c.args, code, out, stderr, c.want)
		} else if c.args[0] == "backup" && (!strings.Contains(stderr, "not in this backup: the conversations") || !strings.Contains(stderr, "the mail in Redis")) {
			t.Errorf("the backup does not say what it has not: %q", stderr)
		}
	}
	if _, stderr, code := elsewhere.Run("restore", filepath.Join(elsewhere.Home, "backup")); code != parleytest.ExitFailed || !strings.Contains(stderr, "parley migrate") {
		t.Errorf("restore: exit code %d, saying %q", code, stderr)
	}
}

// Commands about people refuse to work in a home whose book was migrated elsewhere.
func TestPairingsOfAHomeThatMoved(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "")
	moved := `{"id": "x", "parts": ["store"], "store": "p/d", "bus": "", "began": "2026-03-04T05:06:07Z", "done": "2026-03-04T05:06:08Z"}`
	if err := os.WriteFile(migrate.Path(w.Home), []byte(moved), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"pairing", "list"}, {"pairing", "owner"}, {"chats"}} {
		if out, stderr, code := w.Run(args...); code != parleytest.ExitConfig || !strings.Contains(stderr, "moved to p/d") {
			t.Errorf("%v: exit code %d, saying %q %q", args, code, out, stderr)
		}
	}
}

// Each store needs its own workspace root, which all processes of its fleet share. The error for the root of another
// store says how to continue.
func TestWorkspaceOfAnotherStore(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	fleet := func(store string) *config.Config {
		file := filepath.Join(t.TempDir(), "parley.toml")
		text := fmt.Sprintf("[store]\nurl = \"postgres://u:hunter2@%s\"\n[workspace]\nroot = %q\n", store, root)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := loadConfig(config.Options{File: file, Home: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	for range 2 {
		if err := home.MarkWorkspace(fleet("db/one")); err != nil {
			t.Error(err)
		}
	}
	err := home.MarkWorkspace(fleet("db/two"))
	if err == nil {
		t.Fatal("the root of another store is taken")
	}
	for _, want := range []string{"workspace.root", "parley.toml:4", "db/one", "db/two", "delete " + filepath.Join(root, home.MarkerFile)} {
		if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("it says %v, want %q", err, want)
		}
	}
}
