package operation

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"parley/cmd/parley/config"
	"parley/cmd/parley/data/home"
	"parley/cmd/parley/parleytest"
)

func TestAHomeThatOthersCanWriteDoesNotStart(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "")
	for _, c := range []struct {
		name string
		path string
		mode os.FileMode
		home os.FileMode
		want string // "" if serve starts
	}{
		{"its group writes the home", "", 0, 0o770, "mode 0770"},
		{"everybody writes the home", "", 0, 0o757, "mode 0757"},
		{"everybody writes it, with the sticky bit", "", 0, os.ModeSticky | 0o777, "mode 0777"},
		{"others read it", "", 0, 0o755, ""},
		{"the database in a home that others enter", home.StoreFile, 0o666, 0o711, "mode 0666"},
		{"the token's group", home.TokenFile, 0o660, 0o750, "mode 0660"},
		{"the workspaces", "workspaces", os.ModeDir | 0o777, 0o755, "mode 0777"},
		{"the database in a home that nobody else enters", home.StoreFile, 0o666, 0o700, ""},
		{"a file that is none of ours", "notes.txt", 0o666, 0o755, ""},
	} {
		dir := filepath.Join(t.TempDir(), "home")
		parleytest.Must(t, os.Mkdir(dir, 0o700))
		path := dir
		if c.path != "" {
			path = filepath.Join(dir, c.path)
			if c.mode.IsDir() {
				parleytest.Must(t, os.Mkdir(path, 0o700))
			} else {
				parleytest.Must(t, os.WriteFile(path, nil, 0o600))
			}
			parleytest.Must(t, os.Chmod(path, c.mode.Perm()))
		}
		parleytest.Must(t, os.Chmod(dir, c.home))
		cfg, err := loadConfig(config.Options{File: w.File, Home: dir})
		parleytest.Must(t, err)
		err = home.CheckPermissions(cfg)
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: it is refused: %v", c.name, err)
			}
			continue
		}
		for _, word := range []string{c.want, path + " ", "chmod go-w " + path} {
			if err == nil || !strings.Contains(err.Error(), word) {
				t.Errorf("%s: it says %v, which lacks %q", c.name, err, word)
			}
		}
	}
}

// serve refuses a home that others can write to, exits with the code that says that a restart is useless, and leaves
// nothing in the home.
func TestServeRefusesAHomeThatOthersCanWrite(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "")
	parleytest.Must(t, os.Chmod(w.Home, 0o777))
	for _, args := range [][]string{{"serve"}, {"status"}} {
		out, err := w.Command(args...).CombinedOutput()
		if failed, ok := errors.AsType[*exec.ExitError](err); !ok || failed.ExitCode() != parleytest.ExitConfig || !strings.Contains(string(out), "chmod go-w "+w.Home) {
			t.Errorf("%q ended with %v and said %s", args, err, out)
		}
	}
	entries, err := os.ReadDir(w.Home)
	if err != nil || len(entries) > 0 {
		t.Errorf("the home holds %v, %v", entries, err)
	}
	parleytest.Must(t, os.Chmod(w.Home, 0o700))
	w.Serve()
	w.Telegram.Say(2, 2, "hello")
	w.WaitSaid(2, 1)
}

func TestAHomeOfAnotherUserIsRefused(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.EchoModel, "")
	out, err := asOther(t, w, "status").CombinedOutput()
	if failed, ok := errors.AsType[*exec.ExitError](err); !ok || failed.ExitCode() != parleytest.ExitConfig || !strings.Contains(string(out), "belongs to user") || !strings.Contains(string(out), w.Home) {
		t.Errorf("status ended with %v and said %s", err, out)
	}
}

// otherUser is the id of the user that tests become besides root.
const otherUser = 65533

// asOther returns a command that runs the program as another user, in this world's home and without its configuration.
func asOther(t *testing.T, w *parleytest.World, args ...string) *exec.Cmd {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("becoming another user needs root")
	}
	path, err := parleytest.Binary()
	parleytest.Must(t, err)
	for _, path := range []string{filepath.Dir(path), w.Home} {
		for dir := path; strings.HasPrefix(dir, os.TempDir()+"/"); dir = filepath.Dir(dir) {
			info, err := os.Stat(dir)
			parleytest.Must(t, err)
			parleytest.Must(t, os.Chmod(dir, info.Mode().Perm()|0o055))
		}
	}
	cmd := exec.Command(path, append([]string{"--home", w.Home}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: otherUser, Gid: otherUser}}
	cmd.Env, cmd.Dir = []string{"PATH=" + os.Getenv("PATH"), "HOME=/", "TMPDIR=" + os.TempDir()}, "/"
	return cmd
}
