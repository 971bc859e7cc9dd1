package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"parley/cmd/parley/config"
	"parley/cmd/parley/parleytest"
)

// goSource returns the Go files of the program, without tests, separated by NUL.
func goSource(t *testing.T, top string) string {
	t.Helper()
	var source strings.Builder
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		raw, err := os.ReadFile(path)
		source.Write(raw)
		source.WriteByte(0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return source.String()
}

// docs/troubleshooting.md quotes messages that the program really has.
func TestTroubleshootingQuotesTheProgram(t *testing.T) {
	top := filepath.Join("..", "..")
	source := goSource(t, top)
	page, err := os.ReadFile(filepath.Join(top, "docs", "troubleshooting.md"))
	if err != nil {
		t.Fatal(err)
	}
	headings := regexp.MustCompile("(?m)^### `(.*)`$").FindAllStringSubmatch(string(page), -1)
	if len(headings) < 10 {
		t.Errorf("there are only %d messages", len(headings))
	}
	for _, heading := range headings {
		for part := range strings.SplitSeq(heading[1], "…") {
			if part = strings.TrimSpace(part); part != "" && !strings.Contains(source, part) {
				t.Errorf("the program does not say %q", part)
			}
		}
	}
}

// Links in the pages to files of this repository have a target.
func TestPagesLinkToWhatThereIs(t *testing.T) {
	top := filepath.Join("..", "..")
	pages, err := filepath.Glob(filepath.Join(top, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md", "deploy/*.md"} {
		more, err := filepath.Glob(filepath.Join(top, pattern))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, more...)
	}
	links := regexp.MustCompile(`\]\(([^)#]+)(#[^)]*)?\)`)
	code := regexp.MustCompile("`[^`\n]*`") // what stands in it is not a link
	for _, page := range pages {
		raw, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range links.FindAllStringSubmatch(code.ReplaceAllString(string(raw), ""), -1) {
			if strings.Contains(link[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), link[1])); err != nil {
				t.Errorf("%s links to %s: %v", page, link[1], err)
			}
		}
	}
}

// The configuration accepts the URLs in docs/models.md.
func TestModelAddressesAreTaken(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "models.md"))
	if err != nil {
		t.Fatal(err)
	}
	urls := regexp.MustCompile("(?m)^\\| [^|]+ \\| `(https?://[^`]+)` \\|").FindAllStringSubmatch(string(page), -1)
	if len(urls) < 12 {
		t.Errorf("there are only %d addresses", len(urls))
	}
	for _, url := range urls {
		file := filepath.Join(t.TempDir(), "parley.toml")
		parleytest.Must(t, os.WriteFile(file, []byte("[model]\nname = \"m\"\nbase_url = \""+url[1]+"\"\n"), 0o600))
		if _, err := loadConfig(config.Options{File: file, Home: t.TempDir()}); err != nil {
			t.Error(err)
		}
	}
}

// The files, folders, functions and types that docs/recipes.md names exist, or its recipes add them. .ci/recipes
// checks whether their code compiles.
func TestRecipesNameWhatThereIs(t *testing.T) {
	top := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(top, "docs", "recipes.md"))
	if err != nil {
		t.Fatal(err)
	}
	recipes := regexp.MustCompile("(?ms)^ *```.*?^ *```$").ReplaceAllString(string(page), "")
	added := regexp.MustCompile("(?m)^[0-9]+\\. `([^`]+)`")
	recipes = added.ReplaceAllString(recipes, "")
	source := goSource(t, top)
	member := regexp.MustCompile(`^([A-Za-z]+)\.([A-Za-z]+)$`)
	checked := 0
	for _, name := range regexp.MustCompile("`([\\w./-]+)`").FindAllStringSubmatch(recipes, -1) {
		name := strings.TrimSuffix(name[1], "/...")
		switch parts := member.FindStringSubmatch(name); {
		case strings.Contains(name, "/"):
			if _, err := os.Stat(filepath.Join(top, name)); err != nil {
				t.Errorf("%s is not there", name)
			}
		case strings.HasSuffix(name, ".go"):
			if found, _ := filepath.Glob(filepath.Join(top, "cmd", "parley", "*", name)); len(found) == 0 {
				t.Errorf("no folder of cmd/parley has the file %s", name)
			}
		case parts != nil && parts[2] != "mod" && parts[2] != "md":
			is := `func \(\w+ \*?` + parts[1] + `\) ` + parts[2] + `\(|package ` + parts[1] + `\n[^\x00]*\n(func|type|const|var) ` + parts[2] + `\b`
			if !regexp.MustCompile(is).MatchString(source) {
				t.Errorf("there is no %s", name)
			}
		case regexp.MustCompile(`^\w+[a-z][A-Z]\w+$`).MatchString(name):
			if !regexp.MustCompile(`func (\(\w+ \*?\w+\) )?` + name + `\(|type ` + name + ` `).MatchString(source) {
				t.Errorf("there is no %s", name)
			}
		default:
			continue
		}
		checked++
	}
	if checked < 30 {
		t.Errorf("only %d names were recognized", checked)
	}
}

// The tables of docs/protocol name functions that exist in the packages they are listed with.
func TestTheProtocolNamesWhoWrites(t *testing.T) {
	top := filepath.Join("..", "..")
	pages, err := filepath.Glob(filepath.Join(top, "docs", "protocol", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, page := range append(pages, filepath.Join(top, "docs", "architecture.md")) {
		raw, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		var waiting []string // names whose package follows them
		for _, span := range regexp.MustCompile("(of )?`([\\w./]+)`").FindAllStringSubmatch(string(raw), -1) {
			name := span[2]
			if regexp.MustCompile(`^(agent|bus|channels|cmd|sessions|tools|docs)/`).MatchString(name) {
				if _, err := os.Stat(filepath.Join(top, name)); err != nil {
					t.Errorf("%s names %s, which there is not", filepath.Base(page), name)
				}
			}
			switch {
			case span[1] != "" && strings.Contains(name, "/"):
				for _, one := range waiting {
					checked++
					if !declares(t, filepath.Join(top, name), one) {
						t.Errorf("%s: there is no %s in %s", filepath.Base(page), one, name)
					}
				}
				waiting = nil
			case regexp.MustCompile(`^[a-zA-Z]+\.[a-zA-Z]+$`).MatchString(name) && !strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, ".md"):
				waiting = append(waiting, name)
			case strings.Contains(name, "/"):
				waiting = nil
			}
		}
	}
	if checked < 40 {
		t.Errorf("only %d names are checked", checked)
	}
}

// declares reports whether a package has a method, named as Type.method.
func declares(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	of, method, _ := strings.Cut(name, ".")
	is := regexp.MustCompile(`(?m)^func \(\w+ \*?` + of + `\) ` + method + `\(`)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if is.Match(raw) {
			return true
		}
	}
	return false
}

// The tour stays short enough for a quarter of an hour.
func TestTheTourIsShort(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(strings.Fields(string(raw))); n > 2000 {
		t.Errorf("docs/architecture.md has %d words, and may have 2000: what it has too much belongs to docs/protocol", n)
	}
}
