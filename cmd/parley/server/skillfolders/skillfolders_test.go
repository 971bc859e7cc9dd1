package skillfolders_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"parley/cmd/parley/config"
	"parley/cmd/parley/server/skillfolders"
	"parley/tools"
	"parley/tools/sandbox"
	"parley/tools/skills"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func text(name, description string) string {
	return "---\nname: " + name + "\ndescription: " + description + "\n---\n"
}

// settings returns the configuration of a home with the skills a, which has tools, b, and c, which is turned off. The
// agent main has a and b, some has only b, and none has no skills.
func settings(t *testing.T) *config.Config {
	t.Helper()
	home := t.TempDir()
	for file, text := range map[string]string{
		"a/SKILL.md": text("a", "About a."), "b/SKILL.md": text("b", "About b."), "c/SKILL.md": text("c", "About c."), "a/run": "#!/bin/sh\n",
		"a/skill.toml": "[[tools]]\nname = \"read\"\ndescription = \"R.\"\nbinary = \"run\"\n[[tools]]\nname = \"write\"\ndescription = \"W.\"\nbinary = \"run\"\nsandbox = { workspace = \"write\" }\n",
	} {
		file = filepath.Join(home, skillfolders.Folder, file)
		must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must(t, os.WriteFile(file, []byte(text), 0o755))
	}
	return &config.Config{
		Home: home, Skills: config.Skills{Off: []string{"c"}},
		Agents: map[string]config.Agent{"main": {}, "some": {Skills: []string{"b"}}, "none": {Skills: []string{}}},
	}
}

// over returns skills over a workspace, for an agent with those capabilities.
func over(t *testing.T, files fs.FS, runner *skills.Runner, has ...tools.Permission) *skillfolders.Skills {
	t.Helper()
	found := skillfolders.Find(settings(t))
	must(t, found.Err())
	return skillfolders.New(skillfolders.Config{
		Workspace:    func(string) (fs.FS, error) { return files, nil },
		Agent:        func(session string) string { name, _, _ := strings.Cut(session, ":"); return name },
		Capabilities: func(string) []tools.Permission { return has },
		Runner:       func() *skills.Runner { return runner },
		Watch:        func(all []tools.Tool) []tools.Tool { return all },
	}, found)
}

func names(s *tools.Set) (all []string) {
	for _, spec := range s.Specs() {
		all = append(all, spec.Name)
	}
	return all
}

// walls is a sandbox that is available but runs nothing.
type walls struct{ sandbox.Sandbox }

func TestWhoHasWhichTools(t *testing.T) {
	runner := &skills.Runner{Sandbox: walls{}}
	for name, c := range map[string]struct {
		agent  string
		runner *skills.Runner
		has    []tools.Permission
		want   string
	}{
		"all":                  {"main", runner, []tools.Permission{tools.FileRead, tools.FileWrite}, "a__read a__write skill"},
		"who only reads":       {"main", runner, []tools.Permission{tools.FileRead}, "a__read skill"},
		"who may do nothing":   {"main", runner, nil, "skill"},
		"without a sandbox":    {"main", nil, []tools.Permission{tools.FileRead, tools.FileWrite}, "skill"},
		"another skill":        {"some", runner, []tools.Permission{tools.FileRead, tools.FileWrite}, "skill"},
		"an agent without any": {"none", runner, []tools.Permission{tools.FileRead, tools.FileWrite}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, base := over(t, fstest.MapFS{}, c.runner, c.has...), tools.NewSet()
			all := s.With(base, c.agent+":x:1")
			if got := strings.Join(names(all), " "); got != c.want {
				t.Errorf("it has %q, want %q", got, c.want)
			}
			if again := s.With(base, c.agent+":x:2"); again != all {
				t.Error("another session of the agent has another set")
			}
		})
	}
}

// A program that was written for one sandbox runs in that one or a stricter one. Otherwise it doesn't run, and the
// operator gets a notice.
func TestASandboxThatIsTooWeak(t *testing.T) {
	c := settings(t)
	var text strings.Builder
	for _, name := range []string{"", "none", "podman", "firejail", "landlock", "bubblewrap"} {
		fmt.Fprintf(&text, "[[tools]]\nname = \"in-%s\"\ndescription = \"X.\"\nbinary = \"run\"\nsandbox = { workspace = \"none\" }\n", name)
		if name != "" {
			fmt.Fprintf(&text, "sandboxing = %q\n", name)
		}
	}
	must(t, os.WriteFile(filepath.Join(c.Home, skillfolders.Folder, "a", "skill.toml"), []byte(text.String()), 0o644))
	found := skillfolders.Find(c)
	must(t, found.Err())
	if minor := found.Minor(); len(minor) != 3 || !strings.Contains(minor[1].Error(), `sandboxing "podman" has no effect`) {
		t.Errorf("it says of these without effect %v", minor)
	}
	for mode, left := range map[sandbox.Mode][]string{
		sandbox.Bubblewrap: nil, sandbox.Landlock: {"in-bubblewrap"}, sandbox.None: {"in-landlock", "in-bubblewrap"},
	} {
		s := skillfolders.New(skillfolders.Config{
			Workspace:    func(string) (fs.FS, error) { return fstest.MapFS{}, nil },
			Agent:        func(string) string { return "main" },
			Capabilities: func(string) []tools.Permission { return nil },
			Runner:       func() *skills.Runner { return &skills.Runner{Sandbox: walls{}, Mode: mode} },
			Watch:        func(all []tools.Tool) []tools.Tool { return all },
		}, found)
		has := names(s.With(tools.NewSet(), "main:x:1"))
		told := s.Unsuited(mode)
		if len(has) != 7-len(left) || len(told) != len(left) {
			t.Errorf("in %s there are %q, and it says %v", mode, has, told)
			continue
		}
		for i, name := range left {
			if slices.Contains(has, "a__"+name) || told[i].Skill != "a" || !strings.Contains(told[i].Wrong, "tool "+name+": it needs the sandbox") {
				t.Errorf("in %s there are %q, and it says %v", mode, has, told)
			}
		}
	}
}

func TestWhatThePromptSays(t *testing.T) {
	files := fstest.MapFS{"skills/own/SKILL.md": {Data: []byte(text("own", "About own."))}, "skills/b/SKILL.md": {Data: []byte(text("b", "Another b."))}, "skills/c/SKILL.md": {Data: []byte(text("c", "Another c."))}}
	s := over(t, files, nil, tools.FileRead)
	operator, own, err := s.Prompt("main:x:1")
	must(t, err)
	if !strings.Contains(operator, "- a: About a.\n- b: About b.") || strings.Contains(operator, "About c.") {
		t.Errorf("of the operator's it says %q", operator)
	}
	if !strings.Contains(own, "- own: About own.") || strings.Contains(own, "Another") || !strings.Contains(own, "skills/b/SKILL.md: one of the operator's skills has the same name") {
		t.Errorf("of the session's it says %q", own)
	}
	if operator, own, err = s.Prompt("none:x:1"); operator != "" || !strings.Contains(own, "About own.") || err != nil {
		t.Errorf("to an agent without the operator's it says %q, %q, %v", operator, own, err)
	}
	// An agent that may not read files doesn't get the session's skills, either.
	if operator, own, err = over(t, files, nil).Prompt("main:x:1"); operator == "" || own != "" || err != nil {
		t.Errorf("to an agent that reads no files it says %q, %q, %v", operator, own, err)
	}
	// A skill that strangers may have written isn't in the prompt, and is marked when it is read.
	for _, marks := range []string{`{"files":["skills/own/SKILL.md"]}`, `{"all":true}`, `no JSON`} {
		files[".agent/untrusted.json"] = &fstest.MapFile{Data: []byte(marks)}
		_, own, err = s.Prompt("main:x:1")
		if strings.Contains(own, "About own.") || !strings.Contains(own, "(1)") || err != nil {
			t.Errorf("with the marks %s it says %q, %v", marks, own, err)
		}
		tool, _ := s.With(tools.NewSet(), "main:x:1").Lookup(skills.Tool)
		r, err := tool.Run(context.Background(), tools.Call{Name: skills.Tool, Session: "main:x:1", Args: []byte(`{"name":"own"}`)})
		if err != nil || !r.Untrusted {
			t.Errorf("it gives %s, %t, %v", r.Content, r.Untrusted, err)
		}
	}
}

// A skill with tools and an MCP server can't have the same name, because their tools would be ambiguous. The skill is
// left out.
func TestASkillThatIsCalledAsAServer(t *testing.T) {
	c := settings(t)
	c.MCP = map[string]config.MCPServer{"a": {}, "b": {}}
	found := skillfolders.Find(c)
	if left := found.LeftOut(); len(left) != 1 || left[0].Skill != "a" || !strings.Contains(left[0].Error(), "MCP server") || !strings.Contains(left[0].File, filepath.Join("a", "skill.toml")) {
		t.Errorf("it is told as %v", left)
	}
	if err := found.Err(); err != nil {
		t.Errorf("it stops the start: %v", err)
	}
	if got := found.WithPrograms(); len(got) > 0 {
		t.Errorf("tools are brought by %q", got)
	}
	if got := found.OfAgent("main"); slices.ContainsFunc(got, func(s skills.Skill) bool { return s.Name == "a" }) || len(got) != 1 {
		t.Errorf("an agent has %v", got)
	}
}
