package files

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
	"parley/sessions/sqldb/sqldbtest"
)

// noteTaker plays a model that writes what people say to a file.
func noteTaker(r agenttest.Request) agenttest.Response {
	if r.Rounds() == 0 {
		return agenttest.Calls(agenttest.ToolCall{Name: "write_file", Args: fmt.Sprintf(`{"path":"said.txt","content":%q}`, r.Said())})
	}
	return agenttest.Reply("written")
}

// newFolders returns a world with the agent main, which has a folder of its own, and the agent ops, which is called by
// a word and has none. It also returns a function that gives main another folder.
func newFolders(t *testing.T, folder string) (*parleytest.World, func(folder string)) {
	t.Helper()
	w := parleytest.New(t, noteTaker, "[agents.ops]\n[agents.main]\n#folder\n")
	raw, err := os.ReadFile(w.File)
	parleytest.Must(t, err)
	text := strings.Replace(string(raw), "introduce =", "routes = [{ match = { mention = \"ops\" }, agent = \"ops\" }]\nintroduce =", 1)
	set := func(folder string) {
		t.Helper()
		line := ""
		if folder != "" {
			line = fmt.Sprintf("workspace = %q", folder)
		}
		parleytest.Must(t, os.WriteFile(w.File, []byte(strings.Replace(text, "#folder", line, 1)), 0o600))
	}
	set(folder)
	return w, set
}

func wantFile(t *testing.T, path, want string) {
	t.Helper()
	if raw, err := os.ReadFile(path); err != nil || string(raw) != want {
		t.Errorf("%s has %q, %v, want %q", path, raw, err, want)
	}
}

func wantNothing(t *testing.T, path string) {
	t.Helper()
	if entries, err := os.ReadDir(path); !os.IsNotExist(err) && len(entries) > 0 {
		t.Errorf("%s has %v, %v, want nothing", path, entries, err)
	}
}

// A conversation's folder is made when something first needs it.
func TestAFolderIsMadeWhenItIsNeeded(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, func(r agenttest.Request) agenttest.Response {
		if r.Said() == "note this" {
			return noteTaker(r)
		}
		return parleytest.EchoModel(r)
	}, "")
	folder := filepath.Join(w.Home, "workspaces", "main")
	p := w.Serve()
	w.Telegram.Say(3, 3, "hello")
	w.WaitSaid(3, 1)
	p.Stop()
	if _, err := os.Stat(filepath.Join(folder, "telegram:3")); !os.IsNotExist(err) {
		t.Errorf("a conversation that has no files has a folder: %v", err)
	}
	w.Serve()
	w.Telegram.Say(3, 3, "note this")
	w.WaitSaid(3, 2)
	wantFile(t, filepath.Join(folder, "telegram:3", "said.txt"), "note this")
}

// The files of an agent's conversations are in the agent's own folder, and the files of other agents in the common one.
// Changes in it can be undone. Its files are backed up, restored to where the configuration then puts the folder, and
// erased when they are forgotten.
func TestTheFolderOfAnAgent(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "own")
	w, set := newFolders(t, folder)
	p := w.Serve()
	const group = -7
	w.Telegram.Say(2, 2, "first xyzzyplugh")
	w.WaitSaid(2, 1)
	w.Telegram.Say(2, 2, "second xyzzyplugh")
	w.WaitSaid(2, 2)
	w.Telegram.Say(group, 2, "@parleybot ops theirs xyzzyplugh")
	w.WaitSaid(group, 1)
	file := filepath.Join(folder, "main", "telegram:2", "said.txt")
	wantFile(t, file, "second xyzzyplugh")
	wantFile(t, filepath.Join(w.Home, "workspaces", "ops", "telegram:-7", "said.txt"), "theirs xyzzyplugh")
	wantNothing(t, filepath.Join(w.Home, "workspaces", "main"))
	wantNothing(t, filepath.Join(folder, "ops"))
	w.Telegram.Say(2, 2, "/undo")
	w.WaitSaid(2, 3)
	wantFile(t, file, "first xyzzyplugh")

	backup := filepath.Join(t.TempDir(), "backup")
	run := func(want int, args ...string) string {
		t.Helper()
		out, errs, code := w.Run(args...)
		if code != want {
			t.Fatalf("%q: %d %s", args, code, errs)
		}
		return out + errs
	}
	if said, _, _ := w.Run("doctor"); !strings.Contains(said, "workspace of main: "+folder) {
		t.Errorf("doctor does not tell the folder: %s", said)
	}
	run(0, "backup", backup)
	p.Stop()
	if said := run(parleytest.ExitConfig, "restore", "--yes", backup); !strings.Contains(said, filepath.Join(folder, "main.before")) {
		t.Errorf("a restore beside files of conversations says %s", said)
	}
	first, other := w.Home, filepath.Join(t.TempDir(), "other", "place")
	w.Home = filepath.Join(t.TempDir(), "restored")
	set(other)
	if said := run(0, "restore", backup); strings.Contains(said, "next:") {
		t.Errorf("restore leaves something to do: %s", said)
	}
	wantFile(t, filepath.Join(other, "main", "telegram:2", "said.txt"), "first xyzzyplugh")
	wantFile(t, filepath.Join(w.Home, "workspaces", "ops", "telegram:-7", "said.txt"), "theirs xyzzyplugh")
	wantNothing(t, filepath.Join(w.Home, "workspaces", "main"))
	run(0, "forget", "--yes", "--user", "telegram:2")
	for _, dir := range []string{w.Home, other} {
		if found := parleytest.FilesWith(t, dir, "xyzzyplugh"); len(found) > 0 {
			t.Errorf("after a restore what was said is left in %v", found)
		}
	}

	w.Home = first
	set(folder)
	run(0, "forget", "--yes", "--user", "telegram:2")
	for _, dir := range []string{w.Home, folder} {
		if found := parleytest.FilesWith(t, dir, "xyzzyplugh"); len(found) > 0 {
			t.Errorf("what was said is left in %v", found)
		}
	}
}

var moveRemedy = regexp.MustCompile("`(mkdir -p [^`]+)`")

// If the operator adds, changes or removes an agent's folder in the configuration, the server does not start until the
// files are moved, and says how to move them.
func TestAnAgentsFolderIsChanged(t *testing.T) {
	t.Parallel()
	w, set := newFolders(t, "")
	p := w.Serve()
	w.Telegram.Say(2, 2, "words")
	w.WaitSaid(2, 1)
	p.Stop()
	one, two := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "two")
	said := 1
	for _, folder := range []string{one, two, ""} {
		set(folder)
		if out, _, code := w.Run("doctor"); code != parleytest.ExitFailed || !strings.Contains(out, "parley serve wouldn't start") {
			t.Errorf("with the folder %q doctor ends with %d: %s", folder, code, out)
		}
		for _, args := range [][]string{{"serve"}, {"backup", filepath.Join(t.TempDir(), "b")}} {
			_, errs, code := w.Run(args...)
			remedy := moveRemedy.FindStringSubmatch(errs)
			if code != parleytest.ExitConfig || remedy == nil || !strings.Contains(errs, "agents.main.workspace") {
				t.Fatalf("%q with the folder %q ends with %d: %s", args, folder, code, errs)
			}
			if args[0] == "backup" {
				out, err := exec.Command("sh", "-c", remedy[1]).CombinedOutput()
				if err != nil {
					t.Fatalf("%s: %v %s", remedy[1], err, out)
				}
			}
		}
		at := filepath.Join(w.Home, "workspaces")
		if folder != "" {
			at = folder
		}
		wantFile(t, filepath.Join(at, "main", "telegram:2", "said.txt"), []string{"words", "words 1", "words 2"}[said-1])
		p := w.Serve()
		w.Telegram.Say(2, 2, fmt.Sprintf("words %d", said))
		said++
		w.WaitSaid(2, said)
		p.Stop()
		wantFile(t, filepath.Join(at, "main", "telegram:2", "said.txt"), fmt.Sprintf("words %d", said-1))
	}

	set(one)
	parleytest.Must(t, os.MkdirAll(filepath.Join(one, "main", "telegram:3"), 0o700))
	if _, errs, code := w.Run("serve"); code != parleytest.ExitConfig || !strings.Contains(errs, "mv -n ") {
		t.Errorf("with files in both places serve ends with %d: %s", code, errs)
	}
}

// If the folder of an agent is missing, for example because it is not mounted, the server does not create a new one.
func TestAnAgentsFolderIsNotThere(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "own")
	w, _ := newFolders(t, folder)
	p := w.Serve()
	w.Telegram.Say(2, 2, "words")
	w.WaitSaid(2, 1)
	p.Stop()
	parleytest.Must(t, os.Rename(folder, folder+".away"))
	if _, errs, code := w.Run("serve"); code != parleytest.ExitConfig || !strings.Contains(errs, "isn't there anymore: mount") {
		t.Errorf("without the folder serve ends with %d: %s", code, errs)
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("the folder was made anew: %v", err)
	}
	parleytest.Must(t, os.Rename(folder+".away", folder))
	p = w.Serve()
	w.Telegram.Say(2, 2, "more words")
	w.WaitSaid(2, 2)
	p.Stop()
	wantFile(t, filepath.Join(folder, "main", "telegram:2", "said.txt"), "more words")
}

// Forgetting a conversation erases its files even if its agent is no longer configured.
func TestTheFolderOfAnAgentThatIsGone(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "own")
	w, _ := newFolders(t, "")
	raw, err := os.ReadFile(w.File)
	parleytest.Must(t, err)
	parleytest.Must(t, os.WriteFile(w.File, []byte(strings.Replace(string(raw), "[agents.ops]\n", fmt.Sprintf("[agents.ops]\nworkspace = %q\n", folder), 1)), 0o600))
	p := w.Serve()
	w.Telegram.Say(-7, 2, "@parleybot ops xyzzyplugh")
	w.WaitSaid(-7, 1)
	p.Stop()
	wantFile(t, filepath.Join(folder, "ops", "telegram:-7", "said.txt"), "xyzzyplugh")
	text := strings.Replace(string(raw), "routes = [{ match = { mention = \"ops\" }, agent = \"ops\" }]\n", "", 1)
	parleytest.Must(t, os.WriteFile(w.File, []byte(strings.Replace(text, "[agents.ops]\n", "", 1)), 0o600))
	if _, errs, code := w.Run("forget", "--yes", "--session", "ops:telegram:-7"); code != 0 {
		t.Fatalf("forget: %d %s", code, errs)
	}
	if found := parleytest.FilesWith(t, folder, "xyzzyplugh"); len(found) > 0 {
		t.Errorf("what was said is left in %v", found)
	}
}

// All workers of a fleet use the folder of an agent, even if they start at once. A command that forgets a conversation
// from elsewhere uses it, too.
func TestTheFolderOfAnAgentInAFleet(t *testing.T) {
	t.Parallel()
	redis := os.Getenv("PARLEY_TEST_REDIS_URL")
	if redis == "" {
		t.Skip("there is no PARLEY_TEST_REDIS_URL: run it as `.ci/servers go test …`, or with make test")
	}
	root, folder := t.TempDir(), filepath.Join(t.TempDir(), "own")
	w := parleytest.New(t, noteTaker, fmt.Sprintf("[bus]\nurl = %q\nprefix = %q\n[store]\nurl = %q\n[workspace]\nroot = %q\n[agents.main]\nworkspace = %q\n",
		redis, "test-"+rand.Text(), sqldbtest.New(t), root, folder))
	for _, p := range []*parleytest.Process{w.ServeAs("gateway"), w.ServeAs("worker"), w.ServeAs("worker")} {
		p.WaitServing()
	}
	for chat := int64(2); chat < 6; chat++ {
		w.Telegram.Say(chat, chat, "xyzzyplugh")
		w.WaitSaid(chat, 1)
		wantFile(t, filepath.Join(folder, "main", fmt.Sprintf("telegram:%d", chat), "said.txt"), "xyzzyplugh")
	}
	wantNothing(t, filepath.Join(root, "main"))
	for chat := 2; chat < 6; chat++ {
		if _, errs, code := w.Run("forget", "--yes", "--user", fmt.Sprintf("telegram:%d", chat)); code != 0 {
			t.Fatalf("forget: %d %s", code, errs)
		}
	}
	for _, dir := range []string{root, folder} {
		if found := parleytest.FilesWith(t, dir, "xyzzyplugh"); len(found) > 0 {
			t.Errorf("what was said is left in %v", found)
		}
	}
}
