package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The page has a recipe of each kind. Each recipe names few enough places and fits the checkout as it is.
func TestThePageFitsTheCheckout(t *testing.T) {
	top := filepath.Join("..", "..")
	recipes, err := readPage(filepath.Join(top, page))
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, r := range recipes {
		have[r.title] = true
	}
	for _, title := range []string{"A tool family with a setting", "A channel", "A setting of an agent", "An endpoint with a new noun", "A part of the server"} {
		if !have[title] {
			t.Errorf("there is no recipe for %q", title)
		}
	}
	if _, err := follow(top, recipes); err != nil {
		t.Error(err)
	}
}

// plant writes a checkout with one package and a page of recipes for it, and returns the folder and the page.
func plant(t *testing.T, text string) (root, file string) {
	t.Helper()
	root = t.TempDir()
	for name, content := range map[string]string{
		"go.mod":       "module planted\n\ngo 1.24\n",
		"list.go":      "// Package planted is planted.\npackage planted\n\n// Names returns names.\nfunc Names() []string {\n\treturn []string{\n\t\t\"one\",\n\t}\n}\n",
		"list_test.go": "package planted\n\nimport \"testing\"\n\nfunc TestNames(t *testing.T) {\n\tfor _, name := range Names() {\n\t\tif name == \"\" {\n\t\t\tt.Error(\"a name is empty\")\n\t\t}\n\t}\n}\n",
		"page.md":      text,
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root, filepath.Join(root, "page.md")
}

// good is a valid page of recipes, from which the tests derive broken ones.
const good = "# Page\n\n1. `nowhere.go`: what stands before the first recipe is none.\n\n## A name\n\n" +
	"1. `other/`: a folder.\n\n   ```go other.go\n   // Package other is planted.\n   package other\n\n   // Name is a name.\n   const Name = \"two\"\n   ```\n" +
	"2. `list.go`: its row.\n\n   ```diff\n    package planted\n\n   +import \"planted/other\"\n   +\n    // Names returns names.\n   @@\n    \t\t\"one\",\n   +\t\tother.Name,\n   ```\n\n" +
	"```sh\ngo test ./. -run 'Names'\ngo test ./other\n```\n"

// A recipe is tried on a copy of the checkout, and the error for a broken recipe names the problem.
func TestARecipeThatIsBrokenFails(t *testing.T) {
	for _, c := range []struct{ name, old, now, want string }{
		{"none", "", "", ""},
		{"too many places", "2. `list.go`", "2. `a.go`: x\n   ```go\n   ```\n3. `b.go`: x\n   ```go\n   ```\n4. `c.go`: x\n   ```go\n   ```\n5. `d.go`: x\n   ```go\n   ```\n6. `list.go`", "it has 6 places, and may have 1 to 5"},
		{"what it changes is gone", "    \t\t\"one\",", "    \t\t\"none\",", "list.go: these lines stand in it 0 times"},
		{"it fits two spots", "    \t\t\"one\",\n   +\t\tother.Name,\n", "    }\n    \n   @@\n    \t}\n   @@\n   -\treturn []string{\n   +\n   @@\n\n   +x\n", "list.go: these lines stand in it"},
		{"the file is there", "1. `other/`", "1. `other/`: x\n   ```go a.go\n   package other\n   ```\n2. `list_test.go`: x\n   ```go\n   package planted\n   ```\n3. `third/`", "list_test.go: it is there already"},
		{"the file is not there", "2. `list.go`", "2. `lists.go`", "lists.go"},
		{"no code", "2. `list.go`", "2. `go.mod`: x\n3. `list.go`", "go.mod: there is no code"},
		{"twice the same place", "2. `list.go`", "2. `other/`", "two steps are about other/"},
		{"no place", "1. `other/`: a folder.", "", "a step begins with the path"},
		{"outside of the copy", "1. `other/`", "1. `../other/`", "a step begins with the path"},
		{"a folder's file without a name", "```go other.go", "```go", "has a file's name behind its fence"},
		{"no tests", "```sh\ngo test ./. -run 'Names'\ngo test ./other\n```\n", "", "no block of sh"},
		{"another command", "go test ./other", "rm -r other", "a line of sh is go test"},
		{"not formatted", "const Name = \"two\"", "const  Name = \"two\"", "other.go is not as gofmt has it"},
		{"no Go", "const Name = \"two\"", "const Name = = \"two\"", "other.go:"},
		{"vet objects", "const Name = \"two\"", "const Name = \"two\"\n   \n   func init() { Name := Name; Name = Name }", "go vet"},
		{"a test fails", "const Name = \"two\"", "const Name = \"\"", "-run Names: exit status 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(good, c.old) {
				t.Fatalf("there is no %q to break", c.old)
			}
			root, file := plant(t, strings.Replace(good, c.old, c.now, 1))
			recipes, err := readPage(file)
			if err == nil {
				err = rehearse(t.Context(), io.Discard, root, recipes, func(packages []string) [][]string { return [][]string{append([]string{"vet"}, packages...)} })
			}
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if now, err := os.ReadFile(filepath.Join(root, "list.go")); err != nil || strings.Contains(string(now), "other") {
				t.Errorf("the checkout itself was changed: %v", err)
			}
		})
	}
}
