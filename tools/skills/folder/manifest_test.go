package folder_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/tools"
	"parley/tools/skills/folder"
)

// withManifest finds the skill x, which has that manifest and a program run.
func withManifest(t *testing.T, text string) ([]folder.Skill, []folder.Problem, string) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "x/SKILL.md", front("x", "x"), "x/skill.toml", text, "x/plain", "x")
	must(t, os.WriteFile(filepath.Join(dir, "x", "run"), []byte("#!/bin/sh\n"), 0o755))
	must(t, os.Symlink("/bin/sh", filepath.Join(dir, "x", "out")))
	found, problems := folder.Find(dir)
	return found, problems, filepath.Join(dir, "x", "skill.toml")
}

const tool = "[[tools]]\nname = \"a\"\ndescription = \"A.\"\nbinary = \"run\"\n"

func TestAManifest(t *testing.T) {
	found, problems, _ := withManifest(t, tool+"[[tools]]\nname = \"b\"\ndescription = \"B\\nb.\"\nbinary = \"./run\"\nargs = [\"-x\"]\ntimeout = \"5m\"\neffect = \"idempotent\"\npermissions = [\"shell\"]\n"+
		"[tools.sandbox]\nworkspace = \"write\"\nnetwork = true\n[tools.parameters.properties.n]\ntype = \"integer\"\n")
	if len(problems) > 0 || len(found) != 1 || len(found[0].Programs) != 2 {
		t.Fatalf("found %+v, problems %v", found, problems)
	}
	a, b := found[0].Programs[0], found[0].Programs[1]
	if a.Timeout != time.Minute || a.Effect != tools.Once || a.Workspace != folder.Reads || a.Network || !slices.Equal(a.Needs, []tools.Permission{tools.FileRead}) ||
		string(a.Schema) != `{"additionalProperties":false,"properties":{},"type":"object"}` {
		t.Errorf("without more it is %+v, with the schema %s", a, a.Schema)
	}
	if b.Description != "B b." || b.Binary != "run" || b.Timeout != 5*time.Minute || b.Effect != tools.Idempotent || b.Workspace != folder.Writes || !b.Network || !slices.Equal(b.Flags, []string{"n"}) ||
		!slices.Equal(b.Needs, []tools.Permission{tools.Shell, tools.FileRead, tools.FileWrite, tools.Network}) {
		t.Errorf("it is %+v", b)
	}
	if found, problems, _ := withManifest(t, ""); len(found) != 1 || len(problems) > 0 {
		t.Errorf("an empty one gives %v, %v", found, problems)
	}
}

func TestWhatIsWrongInAManifest(t *testing.T) {
	for text, want := range map[string]string{
		"x":                                  "line 1",
		tool + "colour = 1\n":                "line 5: there is no tools.colour",
		tool + tool:                          "tool a: another has its name",
		"[[tools]]\n":                        "tool 1: its name is missing",
		"[[tools]]\nname = \"a b\"\n":        "tool a b: its name",
		"[[tools]]\nname = \"a\"\n":          "description is missing",
		strings.Repeat(tool, 33):             "33 tools",
		tool + "timeout = \"1h\"\n":          "isn't a time from 1s",
		tool + "timeout = \"x\"\n":           "isn't a time from 1s",
		tool + "effect = \"never\"\n":        `effect "never"`,
		tool + "effect = \"reconcilable\"\n": "effect",
		tool + "effect = \"pure\"\n[tools.sandbox]\nworkspace = \"write\"\n": `effect "pure" with`,
		tool + "permissions = [\"all\"]\n":                                   `there is no "all"`,
		tool + "sandbox = { workspace = \"x\" }\n":                           "sandbox.workspace",
		tool + "sandbox = { off = true }\n":                                  "line 5: there is no tools",
		tool + "parameters = { type = \"array\" }\n":                         "don't describe an object",
		tool + "parameters = { properties = 1 }\n":                           "don't describe an object",
		tool + "parameters = { properties = { a = { type = \"x\" } } }\n":    "aren't a JSON Schema",
		tool + "parameters = { properties = { \"a=b\" = {} } }\n":            "can't be a flag",
		tool + "parameters = { \"$ref\" = \"https://example.com/x\" }\n":     "aren't a JSON Schema",
		tool + "args = [\"\\u0000\"]\n":                                      "NUL",
		strings.Replace(tool, `"run"`, `"plain"`, 1):                         "isn't a program that can be run",
		strings.Replace(tool, `"run"`, `"nosuch"`, 1):                        "does not exist",
		strings.Replace(tool, `"run"`, `"/bin/sh"`, 1):                       "doesn't name a file in",
		strings.Replace(tool, `"run"`, `"../run"`, 1):                        "doesn't name a file in",
		strings.Replace(tool, `"run"`, `"out"`, 1):                           "escapes",
		strings.Replace(tool, `"run"`, `""`, 1):                              "doesn't name a file in",
		"# " + strings.Repeat("x", 64<<10):                                   "too long",
	} {
		found, problems, file := withManifest(t, text)
		if len(found) != 0 || len(problems) != 1 {
			t.Errorf("%.100q gives %v, %v", text, found, problems)
			continue
		}
		if p := problems[0]; p.File != file || p.Minor || p.Remedy == "" || !strings.Contains(p.Wrong, want) || strings.Contains(p.Error(), "\n") {
			t.Errorf("%.100q is told as %v, want %q", text, p, want)
		}
	}
}
