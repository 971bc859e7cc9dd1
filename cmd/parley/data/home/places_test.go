package home

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/cmd/parley/config"
)

// folderConfig returns the configuration of a home in which the agent ops has its own folder.
func folderConfig(t *testing.T) *config.Config {
	t.Helper()
	c := &config.Config{Home: t.TempDir(), Agents: map[string]config.Agent{"main": {}, "ops": {Workspace: filepath.Join(t.TempDir(), "ops")}}}
	c.Workspace.Root, c.Workspace.MaxMB = filepath.Join(c.Home, "workspaces"), 1
	return c
}

// While a process of a release serves that doesn't know agents' folders, no agent uses one.
func TestAgentsFoldersBesideAnOlderRelease(t *testing.T) {
	t.Parallel()
	c := folderConfig(t)
	h, err := Open(t.Context(), c, WorkspaceOverride{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	fleet := *c
	fleet.Bus.URL = "redis://127.0.0.1:1"
	if err := h.checkAllKnowFolders(t.Context(), &fleet); err != nil {
		t.Errorf("alone it is refused: %v", err)
	}
	if err := h.Book.NoteProcess(t.Context(), h.self, understandsPlaces-1); err != nil {
		t.Fatal(err)
	}
	err = h.checkAllKnowFolders(t.Context(), &fleet)
	if wrong, ok := errors.AsType[*config.SettingError](err); !ok || wrong.Key != "agents.ops.workspace" {
		t.Errorf("beside an older release: %v", err)
	}
	fleet.Agents = nil
	if err := h.checkAllKnowFolders(t.Context(), &fleet); err != nil {
		t.Errorf("without such a folder it is refused: %v", err)
	}
}

// Each agent's folder is marked as belonging to its store, and a home with another store is refused there.
func TestAgentsFolderOfAnotherStore(t *testing.T) {
	t.Parallel()
	c := folderConfig(t)
	c.Store.URL = "postgres://u:hunter2@db/one"
	dir := c.Agents["ops"].Workspace
	for _, dir := range []string{c.Workspace.Root, dir} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := MarkWorkspace(c); err != nil {
			t.Fatal(err)
		}
	}
	other := *c
	other.Store.URL, other.Workspace.Root = "postgres://u:hunter2@db/two", t.TempDir()
	err := MarkWorkspace(&other)
	if wrong, ok := errors.AsType[*config.SettingError](err); !ok || wrong.Key != "agents.ops.workspace" || !strings.Contains(wrong.Remedy, filepath.Join(dir, MarkerFile)) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("in the folder of another store: %v", err)
	}
}

// A command that only reads a fleet's data creates no agents' folders on a machine without a server, and uses the
// folders that a server has created.
func TestACommandMakesNoFolders(t *testing.T) {
	t.Parallel()
	c := folderConfig(t)
	c.Store.URL = "postgres://db/one"
	dir := c.Agents["ops"].Workspace
	own := t.TempDir()
	got, err := ForCommand(*c, own)
	if err != nil || got.Workspace.Root != filepath.Join(own, "workspaces") || len(got.Folders()) != 1 {
		t.Errorf("where no server has worked: %v, %v", got.Folders(), err)
	}
	if c.Agents["ops"].Workspace != dir {
		t.Error("the configuration itself was changed")
	}
	for _, dir := range []string{c.Workspace.Root, dir} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(MarkWorkspace(c), notePlaces(c, map[string]string{"ops": dir})); err != nil {
		t.Fatal(err)
	}
	got, err = ForCommand(*c, own)
	if err != nil || got.Workspace.Root != c.Workspace.Root || got.Agents["ops"].Workspace != dir {
		t.Errorf("where a server has worked: %v, %v", got.Folders(), err)
	}
	if err := os.RemoveAll(dir); err != nil { // the folder isn't mounted on this machine
		t.Fatal(err)
	}
	if got, err = ForCommand(*c, own); err != nil {
		t.Fatal(err)
	}
	if err := CheckPlaces(got); err == nil || !strings.Contains(err.Error(), "isn't there") {
		t.Errorf("where only the root is mounted: %v", err)
	}
}

// Workspaces that a restore put into the home are moved to the agents' folders, once. What can't be moved is
// reported.
func TestMoveRestoredWorkspaces(t *testing.T) {
	t.Parallel()
	c := folderConfig(t)
	from, to := filepath.Join(c.Workspace.Root, "ops", "telegram:2"), filepath.Join(c.Agents["ops"].Workspace, "ops", "telegram:2")
	if err := os.MkdirAll(from, 0o700); err != nil {
		t.Fatal(err)
	}
	if next, err := LeftByRestore(c); err != nil || len(next) != 1 || !strings.Contains(next[0], "cp -a "+filepath.Dir(from)+" "+c.Agents["ops"].Workspace) {
		t.Errorf("before it is moved is left %q, %v", next, err)
	}
	for range 2 {
		if err := MoveRestoredWorkspaces(c); err != nil || !isDir(to) || isDir(from) {
			t.Fatalf("it is not moved: %v", err)
		}
	}
	if next, err := LeftByRestore(c); err != nil || len(next) > 0 {
		t.Errorf("left is %q, %v", next, err)
	}
	if err := CheckUnused(c); err == nil {
		t.Error("another restore may begin while the folder holds files")
	}
}

// What root creates in an agent's folder belongs to the folder's owner.
func TestOwnerOfAnAgentsFolder(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	const user = 4242
	c := folderConfig(t)
	dir := c.Agents["ops"].Workspace
	if err := os.Chown(filepath.Dir(dir), user, user); err != nil {
		t.Fatal(err)
	}
	theirs := filepath.Join(dir, "lost+found") // part of the disk, and never given away
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, user, user), os.Mkdir(theirs, 0o700)); err != nil {
		t.Fatal(err)
	}
	h, err := Open(t.Context(), c, WorkspaceOverride{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if err := h.giveToOwner(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(theirs); err != nil {
		t.Fatal(err)
	} else if uid, _ := uidOf(info); uid != 0 {
		t.Errorf("%s was given to %d", theirs, uid)
	}
	if _, err := h.Workspace("ops:telegram:2"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Join(dir, "ops"), filepath.Join(dir, "ops", "telegram:2")} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if uid, ok := uidOf(info); !ok || uid != user {
			t.Errorf("%s belongs to %d", path, uid)
		}
	}
}
