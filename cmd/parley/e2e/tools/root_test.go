package tools

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"parley/cmd/parley/parleytest"
	"parley/tools/sandbox"
)

// owners returns the paths in a folder by the user who owns them, including the folder itself.
func owners(t *testing.T, dir string) map[uint32][]string {
	t.Helper()
	all := map[uint32][]string{}
	parleytest.Must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		uid := info.Sys().(*syscall.Stat_t).Uid
		all[uid] = append(all[uid], path)
		return nil
	}))
	return all
}

// If root runs the program, commands run as another user, in a home that only root can enter. The commands and the
// program can change each other's files. A home in which commands once ran as root still works, and so does /undo.
func TestRootsCommandsRunAsAnother(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root runs commands as another user")
	}
	w := parleytest.New(t, commander, "")
	w.NeedsSandbox()
	parleytest.Must(t, os.Chmod(w.Home, 0o700))
	say := func(text, want string) {
		t.Helper()
		out, errs, code := w.Run("chat", "--session", "one", "-m", text)
		if code != parleytest.ExitDone || !strings.Contains(out, want) {
			t.Errorf("%s: exit code %d, %s%s", text, code, out, errs)
		}
	}
	dir := filepath.Join(w.Home, "workspaces", "main", "console:one")
	user := fmt.Sprint(sandbox.CommandUser)
	say(shellCall(`id -u >mine; cat mine; mkdir d`), user+`\n`)
	say(`write_file {"path":"d/a/b/theirs","content":"written"}`, "")
	say(shellCall(`cat d/a/b/theirs; echo more >>d/a/b/theirs && mv d/a/b/theirs d/a && rm -r d/a/b && rm d/a/theirs && echo gone`), `writtengone\n`)
	say(`edit_file {"path":"mine","old_text":"`+user+`","new_text":"edited"}`, "")
	say(shellCall(`cat mine; echo more >>mine && echo added`), `edited\nadded\n`)
	say("/undo", "")
	say(shellCall(`cat mine; echo again >>mine && echo added`), `edited\nadded\n`)
	if got := owners(t, dir); len(got) != 1 || len(got[sandbox.CommandUser]) == 0 {
		t.Errorf("its files belong to %v", got)
	}
	// The home looks as an earlier release has left it.
	parleytest.Must(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, 0, 0)
	}))
	parleytest.Must(t, os.Chmod(filepath.Join(w.Home, "workspaces"), 0o700))
	parleytest.Must(t, os.Chmod(filepath.Join(w.Home, "workspaces", "main"), 0o700))
	say(shellCall(`id -u; rm mine; echo x >d/new; ls`), user+`\nd\n`)
	say(`git_status {}`, "not a git repository")
	if got := owners(t, dir); len(got) != 1 || len(got[sandbox.CommandUser]) == 0 {
		t.Errorf("afterwards its files belong to %v", got)
	}
	for _, path := range []string{"sessions.db", "token", "."} {
		info, err := os.Stat(filepath.Join(w.Home, path))
		parleytest.Must(t, err)
		if st := info.Sys().(*syscall.Stat_t); st.Uid != 0 || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s belongs to %d and has the mode %v", path, st.Uid, info.Mode())
		}
	}
	if out, _, _ := w.Run("doctor"); !strings.Contains(out, "as user "+user+", and never as root") {
		t.Errorf("doctor says %s", out)
	}
	// In root's own directory, commands run as root, and the directory stays root's.
	own := t.TempDir()
	parleytest.Must(t, os.WriteFile(filepath.Join(own, "file"), []byte("kept"), 0o600))
	out, errs, code := w.Run("chat", "--workspace", own, "-m", shellCall(`id -u; cat file; echo more >>file; echo x >made`))
	switch can := sandbox.CheckPersonal(own); {
	case can == nil && (code != parleytest.ExitDone || !strings.Contains(out, user+`\nkept`) || strings.Contains(errs, "no commands")):
		t.Errorf("in root's directory: exit code %d, %s, %s", code, out, errs)
	case can != nil && (code != parleytest.ExitDone || !strings.Contains(out, "never run as root") || !strings.Contains(errs, "no commands can run in "+own)):
		t.Errorf("in root's directory, which cannot be shown: exit code %d, %s, %s", code, out, errs)
	}
	if got := owners(t, own); len(got) != 1 || len(got[0]) == 0 {
		t.Errorf("root's directory belongs to %v", got)
	}
	parleytest.Must(t, os.Chown(own, 4242, 4242))
	if out, errs, _ := w.Run("chat", "--workspace", own, "-m", shellCall(`id -u`)); !strings.Contains(out, `4242\n`) || strings.Contains(errs, "no commands") {
		t.Errorf("in another's directory: %s, %s", out, errs)
	}
}

// If root may not become another user, agents have no commands, and the program says why.
func TestRootWithoutRights(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root has rights to lose")
	}
	w := parleytest.New(t, commander, parleytest.WithShell)
	w.NeedsSandbox()
	for _, args := range [][]string{{"doctor"}, {"chat", "-m", shellCall(`id -u`)}} {
		cmd := w.Command(args...)
		cmd.Args = append([]string{"setpriv", "--inh-caps=-setuid", "--bounding-set=-setuid", "--"}, append([]string{cmd.Path}, cmd.Args[1:]...)...)
		cmd.Path = "/usr/bin/setpriv"
		out, _ := cmd.CombinedOutput()
		if text := string(out); !strings.Contains(text, "CAP_SETUID") || !strings.Contains(text, "never runs as root") || strings.Contains(text, "exit_code") {
			t.Errorf("%v says %s", args, text)
		}
	}
}
