package skills_test

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"parley/tools"
	"parley/tools/skills"
	"parley/tools/skills/folder"
	"parley/tools/toolstest"
)

var _ = flag.Bool("update", false, "write what models are shown")

func testSkill(name string, more ...string) skills.Skill {
	files := fstest.MapFS{"SKILL.md": {Data: []byte("---\nname: " + name + "\ndescription: About " + name + ".\n---\nDo " + name + ".")}}
	for i := 0; i+1 < len(more); i += 2 {
		files[more[i]] = &fstest.MapFile{Data: []byte(more[i+1])}
	}
	return skills.Skill{Skill: folder.Skill{Name: name, Description: "About " + name + ".", Files: files}}
}

func newCaller(all ...skills.Skill) *toolstest.Caller {
	return toolstest.New(skills.New(func(context.Context, tools.Call) ([]skills.Skill, error) { return all, nil }))
}

func TestShown(t *testing.T) {
	newCaller().Golden(t, filepath.Join("testdata", "shown.json"))
}

func TestASkillIsRead(t *testing.T) {
	c := newCaller(testSkill("a"), testSkill("b", "forms.md", "Forms.", "scripts/run.sh", "echo", ".hidden/x", "x", ".env", "x", "logo.png", "\x89PNG\x00", "1/2/3/4/5/deep", "x"))
	c.Want(t, "skill", `{"name":"a"}`, `{"content":"Do a."}`)
	c.Want(t, "skill", `{"name":"b","file":"SKILL.md"}`, `{"content":"Do b.","files":["forms.md","logo.png","scripts/run.sh"]}`)
	c.Want(t, "skill", `{"name":"b","file":"./forms.md"}`, `{"content":"Forms."}`)
	c.Want(t, "skill", `{"name":"b","file":"scripts/run.sh"}`, `{"content":"echo"}`)
	c.WantError(t, "skill", `{"name":"c"}`, tools.InvalidArgs, `"c"`, "a, b")
	c.WantError(t, "skill", `{"name":"b","file":"nosuch.md"}`, tools.FileNotFound, "skill without file")
	for _, path := range []string{"../a/SKILL.md", "/etc/passwd", "x/../../y"} {
		c.WantError(t, "skill", toolstest.Args("name", "b", "file", path), tools.InvalidPath)
	}
	c.WantError(t, "skill", `{"name":"b","file":"scripts"}`, tools.InvalidPath, "folder")
	c.WantError(t, "skill", `{"name":"b","file":"logo.png"}`, tools.ExecutionFailed, "isn't text")
	c.WantError(t, "skill", `{"name":""}`, tools.InvalidArgs)
	newCaller().WantError(t, "skill", `{"name":"a"}`, tools.InvalidArgs, "no skills")
	if effect := c.Effect(t, "skill", `{"name":"a"}`); effect != tools.Pure {
		t.Errorf("reading is %s", effect)
	}
}

// A skill's text counts as untrusted unless the operator vouches for it.
func TestOnlyTrustedSkillsAreTrusted(t *testing.T) {
	vouched := testSkill("a")
	vouched.Trusted = true
	for _, s := range []skills.Skill{vouched, testSkill("b")} {
		tool := skills.New(func(context.Context, tools.Call) ([]skills.Skill, error) { return []skills.Skill{s}, nil })
		r, err := tool.Run(t.Context(), tools.Call{Name: "skill", Args: []byte(toolstest.Args("name", s.Name))})
		if err != nil || r.Untrusted == s.Trusted {
			t.Errorf("%s gave %+v, %v", s.Name, r, err)
		}
	}
}

func TestAFileOfManyIsBounded(t *testing.T) {
	var more []string
	for i := range 150 {
		more = append(more, fmt.Sprintf("f%03d", i), "x")
	}
	more = append(more, "long", strings.Repeat("x", 1<<20+1))
	c := newCaller(testSkill("a", more...))
	got := c.Want(t, "skill", `{"name":"a"}`, "")
	if !strings.Contains(got, `"f099","… and more"]`) {
		t.Errorf("it lists %s", got)
	}
	c.WantError(t, "skill", `{"name":"a","file":"long"}`, tools.ExecutionFailed, "more than 1048576")
}

func TestThePromptsLines(t *testing.T) {
	if got := skills.OperatorPrompt(nil) + skills.SessionPrompt(nil, nil, 0); got != "" {
		t.Errorf("of no skills it says %q", got)
	}
	if got := skills.OperatorPrompt([]skills.Skill{testSkill("a"), testSkill("b")}); !strings.HasSuffix(got, "\n- a: About a.\n- b: About b.") {
		t.Errorf("it says %q", got)
	}
	var many []skills.Skill
	for i := range folder.MaxSkills {
		s := testSkill(fmt.Sprintf("%s-%d", strings.Repeat("x", 60), i))
		s.Description = strings.Repeat("y", 1024)
		many = append(many, s)
	}
	if got := skills.OperatorPrompt(many); len(got) > 11_900 || strings.Count(got, "\n- x") != folder.MaxSkills {
		t.Errorf("of many skills it says %d bytes", len(got))
	}
	problems := []folder.Problem{{File: "skills/x/SKILL.md", Wrong: "bad", Remedy: "mend it"}}
	got := skills.SessionPrompt([]skills.Skill{testSkill("c")}, problems, 2)
	for _, want := range []string{"in your workspace", "no more than their word", "- c: About c.", "(2)", "skills/x/SKILL.md: bad: mend it"} {
		if !strings.Contains(got, want) {
			t.Errorf("it says %q, which lacks %q", got, want)
		}
	}
}
