//go:build linux

package skills_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/tools"
	"parley/tools/sandbox"
	"parley/tools/skills"
	"parley/tools/skills/folder"
	"parley/tools/testrace"
	"parley/tools/toolstest"
)

func TestMain(m *testing.M) {
	if code, asked := sandbox.Main(os.Args); asked {
		os.Exit(code)
	}
	os.Exit(testrace.Run(m.Run))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// reportScript prints a program's input and environment.
const reportScript = `#!/bin/sh
echo "flags: $*"
echo "stdin: $(cat)"
echo "beside: $(cat "$SKILL_DIR/words")"
echo "workspace: $(cat note 2>&1)"
[ "$1" != "--who" ] || id -u
(echo made >made) 2>/dev/null && echo wrote
(echo evil >"$SKILL_DIR/evil") 2>/dev/null && echo "wrote to the skill"
cat "$SKILL_DIR/../other/SKILL.md" 2>/dev/null && echo "read another skill"
[ -n "$SECRET_OF_SERVER" ] && echo "saw a secret"
exit 0
`

const manifest = `
[[tools]]
name = "look"
description = "Looks."
binary = "bin/report"
args = ["--always"]
timeout = "30s"
effect = "pure"
[tools.parameters]
required = ["text"]
[tools.parameters.properties]
text = { type = "string" }
count = { type = "integer" }
loud = { type = "boolean" }
more = { type = "array", items = { type = "string" } }

[[tools]]
name = "make"
description = "Makes."
binary = "bin/report"
sandbox = { workspace = "write" }

[[tools]]
name = "alone"
description = "Sees nothing."
binary = "bin/report"
args = ["--who"]
sandbox = { workspace = "none" }

[[tools]]
name = "fail"
description = "Fails."
binary = "bin/fail"

[[tools]]
name = "hang"
description = "Hangs."
binary = "bin/hang"
timeout = "1s"

[[tools]]
name = "spill"
description = "Says much."
binary = "bin/spill"
`

// newSkill returns a skill with programs, in a folder of its own.
func newSkill(t *testing.T) skills.Skill {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"s/SKILL.md": "---\nname: s\ndescription: Reports.\n---\n", "s/skill.toml": manifest, "s/words": "spoken",
		"s/bin/report": reportScript, "s/bin/fail": "#!/bin/sh\necho out; echo why >&2; exit 3\n",
		"s/bin/hang": "#!/bin/sh\nsleep 300 & sleep 300\n", "s/bin/spill": "#!/bin/sh\nhead -c 3000000 /dev/zero | tr '\\0' x\n",
		"other/SKILL.md": "---\nname: other\ndescription: Other.\n---\nwords of another",
	} {
		file := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must(t, os.WriteFile(file, []byte(text), 0o755))
	}
	found, problems := folder.Find(dir)
	if len(found) != 2 || len(problems) > 0 {
		t.Fatalf("found %v, problems %v", found, problems)
	}
	return skills.Skill{Skill: found[1]}
}

func eachMode(t *testing.T, test func(t *testing.T, box *sandbox.Box)) {
	t.Setenv("SECRET_OF_SERVER", "x")
	for _, mode := range []sandbox.Mode{sandbox.Bubblewrap, sandbox.Landlock} {
		t.Run(string(mode), func(t *testing.T) {
			box, err := sandbox.Open(t.Context(), sandbox.Config{Mode: mode, MemoryMB: 512, Processes: 64, TmpMB: 64, Supervisor: testrace.Program(), Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Skipf("NOT TESTED: this machine cannot have the sandbox %s: %v", mode, err)
			}
			test(t, box)
		})
	}
}

func TestProgramsOfASkill(t *testing.T) {
	eachMode(t, func(t *testing.T, box *sandbox.Box) {
		s, workspace := newSkill(t), t.TempDir()
		must(t, os.WriteFile(filepath.Join(workspace, "note"), []byte("of the session"), 0o644))
		changed := 0
		c := toolstest.New(skills.Runner{
			Sandbox: box, Changed: func(tools.Call) { changed++ },
			Place: func(_ context.Context, _ tools.Call, network bool) (sandbox.Place, error) {
				if network {
					t.Error("a program without network asked for it")
				}
				return sandbox.Place{Workspace: workspace, Quota: sandbox.Quota{Bytes: 20 << 20, Items: 1000}}, nil
			},
		}.Tools(s)...)
		call := func(name, args string) (r struct {
			ExitCode       int `json:"exit_code"`
			Stdout, Stderr string
		}) {
			t.Helper()
			must(t, json.Unmarshal([]byte(c.Want(t, name, args, "")), &r))
			return r
		}
		args := `{"count":3,"loud":true,"more":["a","--b"],"text":"--evil; $(x) \"y\""}`
		want := "flags: --always --count=3 --loud --more=[\"a\",\"--b\"] --text=--evil; $(x) \"y\"\nstdin: " + args + "\nbeside: spoken\nworkspace: of the session\n"
		if r := call("s__look", args); r.ExitCode != 0 || r.Stdout != want {
			t.Errorf("it gave %+v, want\n%s", r, want)
		}
		if r := call("s__look", `{"text":"x","loud":false}`); !strings.Contains(r.Stdout, "flags: --always --text=x\n") {
			t.Errorf("it gave %+v", r)
		}
		if _, err := os.Stat(filepath.Join(workspace, "made")); err == nil || changed != 0 {
			t.Errorf("a program that only reads has written: %v, %d", err, changed)
		}
		if r := call("s__make", `{}`); !strings.HasSuffix(r.Stdout, "of the session\nwrote\n") || changed != 1 {
			t.Errorf("it gave %+v, and told %d changes", r, changed)
		}
		if r := call("s__alone", `{}`); strings.Contains(r.Stdout, "of the session") || !strings.Contains(r.Stdout, "beside: spoken") {
			t.Errorf("without a workspace it gave %+v", r)
		}
		if r := call("s__fail", `{}`); r.ExitCode != 3 || r.Stdout != "out\n" || r.Stderr != "why\n" {
			t.Errorf("it gave %+v", r)
		}
		if r := call("s__spill", `{}`); len(r.Stdout) > sandbox.MaxOutput+200 || len(r.Stdout) < 1000 {
			t.Errorf("it gave %d bytes", len(r.Stdout))
		}
		c.WantError(t, "s__look", `{"count":1}`, tools.InvalidArgs, "text")
		c.WantError(t, "s__make", `{"config":"/etc/passwd"}`, tools.InvalidArgs, "config")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if got, err := c.Try(ctx, "s__hang", `{}`); err == nil || !strings.Contains(err.Error(), "timeout") {
			t.Errorf("it gave %s, %v", got, err)
		}
		// An argument that is too long for a flag is only on standard input.
		long := strings.Repeat("x", 200_000)
		if r := call("s__look", toolstest.Args("text", long, "count", 1)); !strings.HasPrefix(r.Stdout, "flags: --always --count=1\nstdin: {") {
			t.Errorf("it gave %.200s", r.Stdout)
		}
		if c.Effect(t, "s__look", `{"text":"x"}`) != tools.Pure || c.Effect(t, "s__make", `{}`) != tools.Once {
			t.Error("the effects are not those of the manifest")
		}
		must(t, os.RemoveAll(s.Path))
		c.WantError(t, "s__make", `{}`, tools.ExecutionFailed, "not there anymore")
	})
}

// A program without a workspace runs as the owner of the workspace, even if this process is root.
func TestAProgramWithoutAWorkspaceIsNotRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root could run it as root")
	}
	const nobody = 65534
	eachMode(t, func(t *testing.T, box *sandbox.Box) {
		workspace := t.TempDir()
		must(t, os.Chown(workspace, nobody, nobody))
		skill := newSkill(t)
		must(t, os.Chmod(filepath.Dir(filepath.Dir(skill.Path)), 0o755)) // of all folders of the test
		c := toolstest.New(skills.Runner{
			Sandbox: box, Changed: func(tools.Call) {},
			Place: func(context.Context, tools.Call, bool) (sandbox.Place, error) {
				return sandbox.Place{Workspace: workspace}, nil
			},
		}.Tools(skill)...)
		if got := c.Want(t, "s__alone", `{}`, ""); !strings.Contains(got, `\n65534\n`) {
			t.Errorf("it ran so: %s", got)
		}
	})
}

// All output of a program counts as untrusted.
func TestAProgramIsUntrusted(t *testing.T) {
	eachMode(t, func(t *testing.T, box *sandbox.Box) {
		all := skills.Runner{Sandbox: box, Changed: func(tools.Call) {}, Place: func(context.Context, tools.Call, bool) (sandbox.Place, error) {
			return sandbox.Place{Workspace: t.TempDir()}, nil
		}}.Tools(newSkill(t))
		for _, tool := range all {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			if tool.Spec().Name == "s__hang" {
				cancel()
				ctx, cancel = context.WithTimeout(t.Context(), time.Second)
			}
			r, err := tool.Run(ctx, tools.Call{Name: tool.Spec().Name, Args: json.RawMessage(`{"text":"x"}`)})
			cancel()
			if !r.Untrusted {
				t.Errorf("%s gave %+v, %v", tool.Spec().Name, r, err)
			}
		}
	})
}

func TestToolNames(t *testing.T) {
	if got := skills.ToolName("a", "b"); got != "a__b" {
		t.Errorf("it is called %s", got)
	}
	long, other := skills.ToolName(strings.Repeat("a", 64), "b"), skills.ToolName(strings.Repeat("a", 64), "c")
	if len(long) != 64 || len(other) != 64 || long == other {
		t.Errorf("they are called %s and %s", long, other)
	}
}

// BenchmarkProgram measures the cost of a call without the program itself.
func BenchmarkProgram(b *testing.B) {
	box, err := sandbox.Open(b.Context(), sandbox.Config{Mode: sandbox.Auto, MemoryMB: 512, Processes: 64, TmpMB: 64, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Skip(err)
	}
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "run"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		b.Fatal(err)
	}
	tool := skills.Runner{Sandbox: box, Place: func(context.Context, tools.Call, bool) (sandbox.Place, error) {
		return sandbox.Place{Workspace: dir}, nil
	}}.
		Tools(skills.Skill{Skill: folder.Skill{Name: "s", Path: dir, Programs: []folder.Program{{Name: "run", Binary: "run", Workspace: folder.ReadAccess}}}})[0]
	for b.Loop() {
		if r, err := tool.Run(b.Context(), tools.Call{Args: json.RawMessage(`{}`)}); err != nil {
			b.Fatal(fmt.Sprint(r, err))
		}
	}
}

// A program counts as one that may do anything with files, whatever its manifest says; the manifest decides whether it
// gets the network.
func TestTouchOfAProgram(t *testing.T) {
	for _, network := range []bool{false, true} {
		skill := skills.Skill{Skill: folder.Skill{Name: "demo", Programs: []folder.Program{{Name: "run", Network: network, Workspace: folder.NoAccess}}}}
		spec := skills.Runner{}.Tools(skill)[0].Spec()
		got := tools.Call{Name: spec.Name, Touches: spec.Touches}.Touch()
		if want := (tools.RunsProgram{Effect: "call a tool of demo", Offline: !network}); got.Outward != tools.Outward(want) || got.Reads != tools.Files(tools.AnyFiles{}) || !got.MayWrite() {
			t.Errorf("with network %t it touches %+v", network, got)
		}
	}
}
