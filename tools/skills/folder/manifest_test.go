package folder_test

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/tools"
	"parley/tools/skills/folder"
)

// findWithManifest finds the skill x, which has that manifest and a program named run.
func findWithManifest(t *testing.T, text string) ([]folder.Skill, []folder.Problem, string) {
	t.Helper()
	dir := t.TempDir()
	writeFiles(t, dir, "x/SKILL.md", frontMatterText("x", "x"), "x/skill.toml", text, "x/plain", "x")
	must(t, os.WriteFile(filepath.Join(dir, "x", "run"), []byte("#!/bin/sh\n"), 0o755))
	must(t, os.Symlink("/bin/sh", filepath.Join(dir, "x", "out")))
	found, problems := folder.Find(dir)
	return found, problems, filepath.Join(dir, "x", "skill.toml")
}

const toolEntry = "[[tools]]\nname = \"a\"\ndescription = \"A.\"\nbinary = \"run\"\n"

func TestAManifest(t *testing.T) {
	found, problems, _ := findWithManifest(t, toolEntry+"[[tools]]\nname = \"b\"\ndescription = \"B\\nb.\"\nbinary = \"./run\"\nargs = [\"-x\"]\ntimeout = \"5m\"\neffect = \"idempotent\"\npermissions = [\"shell\"]\n"+
		"[tools.sandbox]\nworkspace = \"write\"\nnetwork = true\n[tools.parameters.properties.n]\ntype = \"integer\"\n")
	if len(problems) > 0 || len(found) != 1 || len(found[0].Programs) != 2 {
		t.Fatalf("found %+v, problems %v", found, problems)
	}
	a, b := found[0].Programs[0], found[0].Programs[1]
	if a.Timeout != time.Minute || a.Effect != tools.Once || a.Workspace != folder.ReadAccess || a.Network || !slices.Equal(a.Needs, []tools.Permission{tools.FileRead}) ||
		string(a.Schema) != `{"additionalProperties":false,"properties":{},"type":"object"}` {
		t.Errorf("without more it is %+v, with the schema %s", a, a.Schema)
	}
	if b.Description != "B b." || b.Binary != "run" || b.Timeout != 5*time.Minute || b.Effect != tools.Idempotent || b.Workspace != folder.WriteAccess || !b.Network || !slices.Equal(b.Flags, []string{"n"}) ||
		!slices.Equal(b.Needs, []tools.Permission{tools.Shell, tools.FileRead, tools.FileWrite, tools.Network}) {
		t.Errorf("it is %+v", b)
	}
	if found, problems, _ := findWithManifest(t, ""); len(found) != 1 || len(problems) > 0 {
		t.Errorf("an empty one gives %v, %v", found, problems)
	}
}

func TestProblemsInAManifest(t *testing.T) {
	for text, want := range map[string]string{
		"x":                                                   "line 1",
		toolEntry + "colour = 1\n":                            "line 5: there is no tools.colour",
		toolEntry + toolEntry:                                 "tool a: another tool has the same name",
		"[[tools]]\n":                                         "tool 1: its name is missing",
		"[[tools]]\nname = \"a b\"\n":                         "tool a b: its name",
		"[[tools]]\nname = \"a\"\n":                           "description is missing",
		strings.Repeat(toolEntry, 33):                         "33 tools",
		toolEntry + "timeout = \"1h\"\n":                      "isn't a time from 1s",
		toolEntry + "timeout = \"x\"\n":                       "isn't a time from 1s",
		toolEntry + "timeout_ms = 999\n":                      `"999ms" isn't a time from 1s`,
		toolEntry + "timeout_ms = 300001\n":                   "isn't a time from 1s",
		toolEntry + "timeout_ms = 9223372036854775807\n":      "isn't a time from 1s",
		toolEntry + "timeout = \"30s\"\ntimeout_ms = 30000\n": "both timeout and timeout_ms",
		toolEntry + "sandboxing = \"docker\"\n":               `sandboxing "docker"`,
		toolEntry + "after = [\"b\"]\n":                       `the skill has no tool "b"`,
		toolEntry + "after = [\"a\"]\n":                       "after: a waits for a",
		"version = \"new\"\n" + toolEntry:                     `version "new" isn't a version`,
		"version = 2\n" + toolEntry:                           "line 1",
		"os = [\"macos\"]\n" + toolEntry:                      `there's no "macos"`,
		toolEntry + "effect = \"never\"\n":                    `effect "never"`,
		toolEntry + "effect = \"reconcilable\"\n":             "effect",
		toolEntry + "effect = \"pure\"\n[tools.sandbox]\nworkspace = \"write\"\n": `effect "pure" with`,
		toolEntry + "permissions = [\"all\"]\n":                                   `there's no "all"`,
		toolEntry + "sandbox = { workspace = \"x\" }\n":                           "sandbox.workspace",
		toolEntry + "sandbox = { off = true }\n":                                  "line 5: there is no tools",
		toolEntry + "parameters = { type = \"array\" }\n":                         "don't describe an object",
		toolEntry + "parameters = { properties = 1 }\n":                           "don't describe an object",
		toolEntry + "parameters = { properties = { a = { type = \"x\" } } }\n":    "aren't a JSON Schema",
		toolEntry + "parameters = { properties = { \"a=b\" = {} } }\n":            "can't be a flag",
		toolEntry + "parameters = { \"$ref\" = \"https://example.com/x\" }\n":     "aren't a JSON Schema",
		toolEntry + "args = [\"\\u0000\"]\n":                                      "NUL",
		strings.Replace(toolEntry, `"run"`, `"plain"`, 1):                         "isn't an executable program",
		strings.Replace(toolEntry, `"run"`, `"nosuch"`, 1):                        "does not exist",
		strings.Replace(toolEntry, `"run"`, `"/bin/sh"`, 1):                       "doesn't name a file in",
		strings.Replace(toolEntry, `"run"`, `"../run"`, 1):                        "doesn't name a file in",
		strings.Replace(toolEntry, `"run"`, `"out"`, 1):                           "escapes",
		strings.Replace(toolEntry, `"run"`, `""`, 1):                              "doesn't name a file in",
		"# " + strings.Repeat("x", 64<<10):                                        "too long",
	} {
		found, problems, file := findWithManifest(t, text)
		if len(found) != 0 || len(problems) != 1 {
			t.Errorf("%.100q gives %v, %v", text, found, problems)
			continue
		}
		if p := problems[0]; p.File != file || p.IsMinor || p.Remedy == "" || !strings.Contains(p.Wrong, want) || strings.Contains(p.Error(), "\n") {
			t.Errorf("%.100q is told as %v, want %q", text, p, want)
		}
	}
}

// A manifest written for another program is read, too.
func TestAManifestOfAnotherProgram(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, "x/SKILL.md", frontMatterText("x", "x"), "x/skill.toml", `[[tools]]
name = "bash"
binary = "bin/dt-bash"
description = "Execute shell commands"
sandboxing = "firejail"      # none, firejail, bubblewrap, podman
`, "x/bin/dt-bash", "#!/bin/sh\n")
	must(t, os.Chmod(filepath.Join(dir, "x", "bin", "dt-bash"), 0o755))
	found, problems := folder.Find(dir)
	if len(found) != 1 || len(found[0].Programs) != 1 || found[0].Programs[0].Name != "bash" || found[0].Programs[0].Binary != "bin/dt-bash" {
		t.Fatalf("found %+v, problems %v", found, problems)
	}
	if len(problems) != 1 || !problems[0].IsMinor || problems[0].Skill != "x" || !strings.Contains(problems[0].Wrong, `tool bash: sandboxing "firejail" has no effect`) {
		t.Errorf("the problems are %v", problems)
	}
}

func TestAWholeManifest(t *testing.T) {
	found, problems, _ := findWithManifest(t, "version = \"2.0.0-rc.1\"\nos = [\"linux\", \"darwin\", \"windows\", \"freebsd\", \"netbsd\", \"openbsd\"]\n"+
		toolEntry+"timeout_ms = 30500\nsandboxing = \"landlock\"\nafter = [\"b\"]\n"+strings.Replace(toolEntry, `"a"`, `"b"`, 1)+"sandboxing = \"bubblewrap\"\n")
	if len(found) != 1 || len(problems) > 0 || len(found[0].Programs) != 2 {
		t.Fatalf("found %+v, problems %v", found, problems)
	}
	a, b := found[0].Programs[0], found[0].Programs[1]
	if found[0].Version != "2.0.0-rc.1" || a.Timeout != 30500*time.Millisecond || a.Sandboxing != folder.Landlock || b.Sandboxing != folder.Bubblewrap || !slices.Equal(a.After, []string{"b"}) || b.After != nil {
		t.Errorf("it is %q %+v and %+v", found[0].Version, a, b)
	}
	other := "windows"
	if runtime.GOOS == other {
		other = "linux"
	}
	found, problems, file := findWithManifest(t, "os = [\""+other+"\"]\n"+toolEntry)
	if len(found) != 1 || found[0].Programs != nil || len(problems) != 1 || !problems[0].IsMinor || problems[0].File != file || !strings.Contains(problems[0].Wrong, "its tools are for "+other) {
		t.Errorf("on another system it found %+v, problems %v", found, problems)
	}
}

// Two versions of a skill can be in neighboring folders, one of which has the version in its name.
func TestVersionsSideBySide(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, "x/SKILL.md", frontMatterText("x", "old"), "x/skill.toml", "version = \"1.4\"\n", "x-v2/SKILL.md", frontMatterText("x", "new"), "x-v2/skill.toml", "version = \"2.0.0\"\n",
		"x-v3/SKILL.md", frontMatterText("x", "wrong"), "x-v3/skill.toml", "version = \"4.0.0\"\n", "y-v2/SKILL.md", frontMatterText("x", "another"))
	found, problems := folder.Find(dir)
	var got []string
	for _, s := range found {
		got = append(got, s.Name+" "+s.Version+" "+s.Description)
	}
	if want := []string{"x 1.4 old", "x-v2 2.0.0 new"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	if len(problems) != 2 || !strings.Contains(problems[0].Error(), `its version is 4.0.0, and its folder is called "x-v3": end the folder's name in -v4`) || !strings.Contains(problems[1].Error(), `its name is x, and its folder is called "y-v2"`) {
		t.Errorf("the problems are %v", problems)
	}
}

// A skill's hash changes with every file that its programs could read.
func TestAHashTellsChanges(t *testing.T) {
	found, _, file := findWithManifest(t, toolEntry)
	dir := filepath.Dir(file)
	hash := func() string {
		t.Helper()
		sum, err := found[0].Hash()
		must(t, err)
		return sum
	}
	seen := []string{hash()}
	if again := hash(); again != seen[0] {
		t.Error("the same files have two hashes")
	}
	for _, change := range []func() error{
		func() error { return os.WriteFile(filepath.Join(dir, "run"), []byte("#!/bin/sh\nexit 1\n"), 0o755) },
		func() error { return os.WriteFile(filepath.Join(dir, "plain"), []byte("y"), 0o644) },
		func() error { return os.Chmod(filepath.Join(dir, "plain"), 0o755) },
		func() error { return os.WriteFile(filepath.Join(dir, "more"), nil, 0o644) },
		func() error { return os.Remove(filepath.Join(dir, "out")) },
		func() error { return os.Truncate(filepath.Join(dir, "more"), 17<<20) },
		func() error { return os.Chtimes(filepath.Join(dir, "more"), time.Time{}, time.Unix(1, 0)) },
	} {
		must(t, change())
		sum := hash()
		if slices.Contains(seen, sum) {
			t.Errorf("after %d changes the hash is an earlier one", len(seen))
		}
		seen = append(seen, sum)
	}
	must(t, os.RemoveAll(dir))
	if sum, err := found[0].Hash(); err == nil {
		t.Errorf("of a folder that is gone the hash is %q", sum)
	}
}
