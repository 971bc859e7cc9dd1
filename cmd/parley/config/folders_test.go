package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/cmd/parley/config"
)

// An agent's folder is relative to the configuration file's folder, and the configuration names the folder of each
// agent that has one.
func TestFoldersOfAgents(t *testing.T) {
	c := good(t, "[agents.ops]\nworkspace = \"ops\"\n[agents.lab]\nworkspace = \"home/lab\"\n[agents.plain]", nil)
	at, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	same(t, "folders", c.Folders(), []config.Folder{
		{Key: "workspace.root", Dir: filepath.Join(at, "home", "workspaces")},
		{Agent: "lab", Key: "agents.lab.workspace", Dir: filepath.Join(at, "home", "lab")},
		{Agent: "ops", Key: "agents.ops.workspace", Dir: filepath.Join(at, "ops")},
	})
}

// The configuration is refused if an agent's folder isn't separate from other files.
func TestBadFoldersOfAgents(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"of all":              {"[agents.defaults]\nworkspace = \"ops\"", `2: agents.defaults.workspace: all agents would share the folder: write it as root in [workspace]`},
		"empty":               {"[agents.ops]\nworkspace = \"\"", `2: agents.ops.workspace: is empty`},
		"the root":            {"[agents.ops]\nworkspace = \"home/workspaces\"", `2: agents.ops.workspace: AT/home/workspaces overlaps with the folder in [workspace] root: choose a folder just for this agent's conversations, such as /srv/ops`},
		"in the root":         {"[workspace]\nroot = \"all\"\n[agents.ops]\nworkspace = \"all/ops\"", `4: agents.ops.workspace: AT/all/ops overlaps with the folder in [workspace] root`},
		"around the root":     {"[workspace]\nroot = \"all/root\"\n[agents.ops]\nworkspace = \"all\"", `4: agents.ops.workspace: AT/all overlaps with the folder in [workspace] root`},
		"through a link":      {"[workspace]\nroot = \"all\"\n[agents.ops]\nworkspace = \"link/ops\"", `4: agents.ops.workspace: AT/link/ops overlaps with the folder in [workspace] root`},
		"the home":            {"[agents.ops]\nworkspace = \"home\"", `2: agents.ops.workspace: the home is in that folder`},
		"around the home":     {"[agents.ops]\nworkspace = \".\"", `2: agents.ops.workspace: the home is in that folder`},
		"the home's own":      {"[agents.ops]\nworkspace = \"home/skills\"", `2: agents.ops.workspace: AT/home/skills overlaps with one of the home's own folders`},
		"what all agents see": {"[knowledge]\ndir = \"k\"\n[agents.ops]\nworkspace = \"k/ops\"", `4: agents.ops.workspace: AT/k/ops overlaps with the folder in [knowledge] dir`},
		"skills":              {"[skills]\ndirs = [\"s\"]\n[agents.ops]\nworkspace = \"s\"", `4: agents.ops.workspace: AT/s overlaps with a folder in [skills] dirs`},
		"another agent's":     {"[agents.lab]\nworkspace = \"ops\"\n[agents.ops]\nworkspace = \"ops\"", `4: agents.ops.workspace: AT/ops overlaps with the folder of the agent lab`},
		"in another agent's":  {"[agents.lab]\nworkspace = \"ops/lab\"\n[agents.ops]\nworkspace = \"ops\"", `4: agents.ops.workspace: AT/ops overlaps with the folder of the agent lab`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Chdir(dir)
			at, err := os.Getwd()
			if err != nil {
				t.Fatal(err)
			}
			for _, err := range []error{os.Mkdir("all", 0o700), os.Mkdir("k", 0o700), os.Mkdir("s", 0o700), os.Symlink("all", "link")} {
				if err != nil {
					t.Fatal(err)
				}
			}
			put(t, ".", "parley.toml", c.text)
			_, err = load(config.Options{File: "parley.toml", Home: "home", Env: vars{}.look})
			if want := "parley.toml:" + strings.ReplaceAll(c.want, "AT", at); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("it says %v, want %s", err, want)
			}
		})
	}
}
