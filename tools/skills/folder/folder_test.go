package folder_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"parley/tools/skills/folder"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// writeFiles makes files below a folder, from names and contents in turn.
func writeFiles(t *testing.T, dir string, pairs ...string) {
	t.Helper()
	for i := 0; i+1 < len(pairs); i += 2 {
		file := filepath.Join(dir, filepath.FromSlash(pairs[i]))
		must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must(t, os.WriteFile(file, []byte(pairs[i+1]), 0o644))
	}
}

func frontMatterText(name, description string) string {
	return "---\nname: " + name + "\ndescription: " + description + "\n---\n\nDo it.\n"
}

func TestSkillsAreFound(t *testing.T) {
	one, two, linked := t.TempDir(), t.TempDir(), t.TempDir()
	writeFiles(t, one,
		"reports/SKILL.md", "\uFEFF---\r\nname: reports\r\ndescription: |\r\n  How reports\r\n  are \u202ewritten.\r\nallowed-tools: Bash(*)\r\nmetadata:\r\n  x: 1\r\n---\r\n\r\n# Reports\r\nBegin with the sum.\r\n",
		"README.md", "x", ".git/SKILL.md", "x", "notes/a.md", "x")
	writeFiles(t, two, "alpha/SKILL.md", frontMatterText("alpha", `"Yes: with a colon"`))
	writeFiles(t, linked, "beta/SKILL.md", "---\nname: beta\ndescription: short\n---")
	must(t, os.Symlink(filepath.Join(linked, "beta"), filepath.Join(two, "beta")))
	found, problems := folder.Find(one, two)
	var names []string
	for _, s := range found {
		names = append(names, s.Name+"="+s.Description)
	}
	if want := []string{"alpha=Yes: with a colon", "beta=short", "reports=How reports are written."}; !slices.Equal(names, want) {
		t.Errorf("found %q, want %q", names, want)
	}
	if body, err := found[2].Body(); body != "# Reports\nBegin with the sum." || err != nil {
		t.Errorf("the body is %q, %v", body, err)
	}
	if body, err := found[1].Body(); body != "" || err != nil {
		t.Errorf("an empty body is %q, %v", body, err)
	}
	if len(problems) != 1 || !problems[0].IsMinor || problems[0].File != filepath.Join(one, "notes") {
		t.Errorf("the problems are %v", problems)
	}
}

func TestFoldersThatAreNotSkillsAreReported(t *testing.T) {
	for name, c := range map[string]struct{ folder, text, want string }{
		"no dashes":           {"x", "# X", "three dashes"},
		"no end":              {"x", "---\nname: x\n", "no second line"},
		"no end, long":        {"x", "---\nname: x\n" + strings.Repeat("# more\n", 10_000), "no second line"},
		"isn't YAML":          {"x", frontMatterText("x", "use it: when"), "a text with a colon needs quotes"},
		"a bomb":              {"x", "---\na: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\nname: [*f,*f]\n---\n", "isn't YAML"},
		"deep":                {"x", "---\nname: " + strings.Repeat("[", 10_000) + "\n---\n", "isn't YAML"},
		"no text":             {"x", frontMatterText("x", "\xff\xfe"), "UTF-8"},
		"no name":             {"x", "---\ndescription: x\n---\n", "write name: x"},
		"no description":      {"x", "---\nname: x\n---\n", "it has no description"},
		"a long one":          {"x", frontMatterText("x", strings.Repeat("ä", 1025)), "more than 1024 characters"},
		"another name":        {"x", frontMatterText("y", "z"), "its name is y"},
		"a bad name":          {"X y", frontMatterText("X y", "z"), "small letters"},
		"a name that is long": {strings.Repeat("x", 65), frontMatterText(strings.Repeat("x", 65), "z"), "64 at most"},
		"a long file":         {"x", frontMatterText("x", "z") + strings.Repeat("x", folder.MaxFile), "at most"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeFiles(t, dir, c.folder+"/SKILL.md", c.text)
			found, problems := folder.Find(dir)
			if len(found) != 0 || len(problems) != 1 || problems[0].IsMinor {
				t.Fatalf("found %v, problems %v", found, problems)
			}
			p := problems[0]
			if !strings.Contains(p.Error(), c.want) || p.File != filepath.Join(dir, c.folder, "SKILL.md") || p.Remedy == "" {
				t.Errorf("it is told as %q, want %q", p, c.want)
			}
			if len(p.Error()) > 700 || strings.ContainsAny(p.Error(), "\n\x1b") {
				t.Errorf("it is told as %q", p)
			}
		})
	}
}

func TestOtherProblems(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	writeFiles(t, one, "a/SKILL.md", frontMatterText("a", "x"), "lower/skill.md", "x", "b/x", "x")
	writeFiles(t, two, "a/SKILL.md", frontMatterText("a", "x"))
	must(t, os.Mkdir(filepath.Join(two, "dir"), 0o755))
	must(t, os.Mkdir(filepath.Join(two, "dir", "SKILL.md"), 0o755))
	must(t, os.Mkdir(filepath.Join(two, "fifo"), 0o755))
	must(t, syscall.Mkfifo(filepath.Join(two, "fifo", "SKILL.md"), 0o644))
	must(t, os.Mkdir(filepath.Join(two, "link"), 0o755))
	must(t, os.Symlink("/etc/hostname", filepath.Join(two, "link", "SKILL.md")))
	found, problems := folder.Find(one, two, filepath.Join(one, "missing"))
	if len(found) != 1 {
		t.Errorf("found %v", found)
	}
	said := map[string]folder.Problem{}
	for _, p := range problems {
		said[strings.TrimPrefix(strings.TrimPrefix(p.File, one), two)] = p
	}
	for file, want := range map[string]string{
		"/a": "another skill has the same name", "/lower": "it has no SKILL.md", "/b": "it has no SKILL.md", "/dir/SKILL.md": "isn't a regular file",
		"/fifo/SKILL.md": "isn't a regular file", "/link/SKILL.md": "escapes", "/missing": "can't be read",
	} {
		if p := said[file]; !strings.Contains(p.Wrong, want) || p.IsMinor != (file == "/b") {
			t.Errorf("%s is told as %+v, want %q", file, p, want)
		}
	}
}

// In a workspace, folders that are not skills are not reported, and the number of skills is limited.
func TestSkillsOfAWorkspace(t *testing.T) {
	files := fstest.MapFS{
		"skills/good/SKILL.md": {Data: []byte(frontMatterText("good", "x"))}, "skills/bad/SKILL.md": {Data: []byte("x")},
		"skills/other/x": {Data: []byte("x")}, "skills/file": {Data: []byte("x")},
	}
	found, problems := folder.ReadIn(files, "skills")
	if len(found) != 1 || found[0].Name != "good" || len(problems) != 1 || problems[0].File != "skills/bad/SKILL.md" {
		t.Errorf("found %v, problems %v", found, problems)
	}
	if found, problems := folder.ReadIn(fstest.MapFS{}, "skills"); found != nil || problems != nil {
		t.Errorf("found %v, problems %v", found, problems)
	}
	for i := range 60 {
		name := "n" + strings.Repeat("x", i)
		files["skills/"+name+"/SKILL.md"] = &fstest.MapFile{Data: []byte(frontMatterText(name, "x"))}
	}
	found, problems = folder.ReadIn(files, "skills")
	if n := len(found); n > 50 || !strings.Contains(problems[len(problems)-1].Wrong, "no more than 50") {
		t.Errorf("found %d, problems %v", n, problems)
	}
}

// The limit holds for all skills: one with a manifest counts as a skill and as a problem.
func TestSkillsOfAWorkspaceWithManifestsAreBounded(t *testing.T) {
	files := fstest.MapFS{"skills/a/SKILL.md": {Data: []byte(frontMatterText("a", "x"))}}
	for i := range 60 {
		name := "n" + strings.Repeat("x", i)
		files["skills/"+name+"/SKILL.md"] = &fstest.MapFile{Data: []byte(frontMatterText(name, "x"))}
		files["skills/"+name+"/skill.toml"] = &fstest.MapFile{}
	}
	found, problems := folder.ReadIn(files, "skills")
	if n := len(found); n > 50 || !strings.Contains(problems[len(problems)-1].Wrong, "no more than 50") {
		t.Errorf("found %d skills and %d problems, the last of which is %v", n, len(problems), problems[len(problems)-1])
	}
}
