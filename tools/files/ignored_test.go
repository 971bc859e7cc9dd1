package files_test

import (
	"fmt"
	"strings"
	"testing"
)

func TestFilesIgnoredByGitAreLeftOut(t *testing.T) {
	c, dir := newCaller(t)
	writeFile(t, dir, ".gitignore", "*.log\n!kept.log\n/out/\n")
	for _, name := range []string{"a.txt", "a.log", "kept.log", "out/b.txt", "sub/out/c.txt", "node_modules/p/index.js", "sub/.gitignore"} {
		writeFile(t, dir, name, "word in "+name+"\n")
	}
	writeFile(t, dir, "node_modules/p/only.js", "only here\n")
	for given, want := range map[string]string{
		args("pattern", "**/*.txt"):                      `{"matches":["a.txt","sub/out/c.txt"],"count":2}`,
		args("pattern", "**/*.txt", "ignored", true):     `{"matches":["a.txt","out/b.txt","sub/out/c.txt"],"count":3}`,
		args("pattern", "**/*.log"):                      `{"matches":["kept.log"],"count":1}`,
		args("pattern", "**/*.js"):                       `{"matches":[],"count":0,"ignored":"2 matches in ignored files: pass ignored=true"}`,
		args("pattern", "out/*"):                         `{"matches":["out/b.txt"],"count":1}`,
		args("pattern", "*.js", "path", "node_modules"):  `{"matches":[],"count":0}`,
		args("pattern", "node_modules/p/*"):              `{"matches":["node_modules/p/index.js","node_modules/p/only.js"],"count":2}`,
		args("pattern", "**/*.rs"):                       `{"matches":[],"count":0}`,
		args("pattern", "node_modules", "ignored", true): `{"matches":["node_modules/"],"count":1}`,
	} {
		c.Want(t, "glob", given, want)
	}
	for given, want := range map[string]string{
		args("pattern", "word in a"):                      `{"matches":[{"path":"a.txt","line":1,"text":"word in a.txt"}],"count":1}`,
		args("pattern", "word in a", "ignored", true):     `{"matches":[{"path":"a.log","line":1,"text":"word in a.log"},{"path":"a.txt","line":1,"text":"word in a.txt"}],"count":2}`,
		args("pattern", "only here"):                      `{"matches":[],"count":0,"ignored":"1 match in ignored files: pass ignored=true"}`,
		args("pattern", "in a.log", "path", "a.log"):      `{"matches":[{"path":"a.log","line":1,"text":"word in a.log"}],"count":1}`,
		args("pattern", "only", "path", "node_modules/p"): `{"matches":[{"path":"node_modules/p/only.js","line":1,"text":"only here"}],"count":1}`,
		args("pattern", "nowhere"):                        `{"matches":[],"count":0}`,
	} {
		c.Want(t, "grep", given, want)
	}
	for i := range 1200 {
		writeFile(t, dir, fmt.Sprintf("node_modules/many/%d.ts", i), "often\n")
	}
	for tool, given := range map[string]string{"glob": args("pattern", "**/*.ts"), "grep": args("pattern", "often")} {
		if got := c.Want(t, tool, given, ""); !strings.Contains(got, `"matches":[],"count":0,"ignored":"at least `) {
			t.Errorf("%s says %.300s", tool, got)
		}
	}
}
