package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// plant writes a module with one package that has these files.
func plant(t *testing.T, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module planted\n\ngo 1.24\n"
	for name, source := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
}

func TestArrowsThatPointUp(t *testing.T) {
	plant(t, map[string]string{
		"top.go":      "package planted\n\ntype top struct{ m middle }\n\nfunc (t top) run() { t.m.run() }\n",
		"middle.go":   "package planted\n\ntype middle struct{}\n\nfunc (middle) run() {}\n\nfunc one() {}\n\nvar _ = top.run\n",
		"ground.go":   "package planted\n\nfunc ground() { one() }\n\nfunc other() {}\n",
		"ignored.go":  "package planted\n\nimport \"fmt\"\n\nvar _ = fmt.Sprint\n",
		"top_test.go": "package planted\n\nvar _ = ground\n",
	})
	var out bytes.Buffer
	over, err := run(&out, true, nil)
	if err != nil || over {
		t.Fatalf("over its limit: %v, %v", over, err)
	}
	for _, want := range []string{
		"planted: arrows up of 3 between its 4 files: 1\n",
		".go uses ",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, &out)
		}
	}
}

func TestWhatIsOverItsLimit(t *testing.T) {
	full := func(methods, lines int) map[string]string {
		var b strings.Builder
		b.WriteString("package planted\n\ntype full struct{}\n")
		for i := range methods {
			fmt.Fprintf(&b, "func (*full) m%d() {}\n", i)
		}
		b.WriteString(strings.Repeat("\n", lines))
		return map[string]string{"full.go": b.String()}
	}
	circle := map[string]string{}
	for i := range 24 {
		circle[fmt.Sprintf("f%d.go", i)] = fmt.Sprintf("package planted\n\nfunc f%d() { f%d() }\n", i, i^1)
	}
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string
		over  bool
	}{
		{"nothing", full(36, 100), "", false},
		{"nearly full", full(37, 4600), "is nearly full", false},
		{"methods", full(41, 0), "methods of full: 41, and may have 40", true},
		{"lines", full(0, 5000), "and may have 5000", true},
		{"arrows", circle, "arrows up of 24 between its 24 files: 12, and may have 10", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			plant(t, c.files)
			var out bytes.Buffer
			over, err := run(&out, false, nil)
			if err != nil || over != c.over || !strings.Contains(out.String(), c.want) || c.want == "" && out.Len() > 0 {
				t.Errorf("over is %v, want %v, %v; it says %q, want %q", over, c.over, err, &out, c.want)
			}
		})
	}
}
