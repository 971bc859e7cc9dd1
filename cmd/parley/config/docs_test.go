package config

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/cmd/parley/config/schema"
)

// undocumented compares the declarations with the TOML on a page. It returns the settings and defaults that the page
// lacks, and names on it that are no settings.
func undocumented(sections []schema.Section, page string) (wrong []string) {
	lines := map[string]string{} // by table and key, as declared: "agents.queue"
	table := ""
	header := regexp.MustCompile(`^(?:# )?\[([a-z_.-]+)\]`)
	line := regexp.MustCompile(`^(?:# )?([a-z_.]+) = `)
	for _, block := range regexp.MustCompile("(?s)```toml\n(.*?)```").FindAllStringSubmatch(page, -1) {
		for text := range strings.SplitSeq(block[1], "\n") {
			if m := header.FindStringSubmatch(text); m != nil {
				table = declaredTable(sections, m[1])
			} else if m := line.FindStringSubmatch(text); m != nil {
				lines[table+"."+m[1]] += text
			}
		}
	}
	known := map[string]bool{}
	for _, sec := range sections {
		for _, set := range sec.Settings {
			path := sec.Name + "." + set.Key
			if sec.KeysAreNames() {
				for name := range lines {
					known[name] = known[name] || strings.HasPrefix(name, path)
				}
				continue
			}
			known[path] = true
			text, named := lines[path]
			switch {
			case !named:
				wrong = append(wrong, path+" is not named")
			case set.Default != nil && !says(text, defaultTOML(set)):
				wrong = append(wrong, path+" does not say its default")
			case set.NotYet && !strings.Contains(text, "no effect yet"):
				wrong = append(wrong, path+" has no effect yet, and does not say so")
			}
		}
	}
	for path := range lines {
		if !known[path] {
			wrong = append(wrong, path+" is no setting")
		}
	}
	slices.Sort(wrong)
	return wrong
}

// declaredTable returns the name under which a table is declared, without the operator's part: [agents.ops.shell]
// becomes agents.shell, and [tools.shell] stays.
func declaredTable(sections []schema.Section, name string) string {
	parts := strings.Split(name, ".")
	named := slices.ContainsFunc(sections, func(s schema.Section) bool { return s.Named && s.Name == parts[0] })
	if named && len(parts) > 1 {
		parts = slices.Delete(parts, 1, 2)
	}
	return strings.Join(parts, ".")
}

// defaultTOML returns a setting's default as TOML.
func defaultTOML(set schema.Setting) string {
	set.Example = ""
	return set.ExampleTOML()
}

// says reports whether a line contains a value as a whole word: 30 doesn't contain 3.
func says(line, value string) bool {
	return regexp.MustCompile(`(^|\W)` + regexp.QuoteMeta(value) + `(\W|$)`).MatchString(line)
}

func TestDocumentationNamesEverySetting(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range undocumented(declared(), string(page)) {
		t.Errorf("docs/configuration.md: %s", wrong)
	}
}

// undocumented reports each kind of gap in a page.
func TestUndocumented(t *testing.T) {
	sections := []schema.Section{
		{Name: "serve", Settings: []schema.Setting{
			{Key: "named", Kind: schema.Count, Default: int64(7)},
			{Key: "missing", Kind: schema.Text},
			{Key: "shell.other", Kind: schema.Text, Default: "x"},
			{Key: "later", Kind: schema.Text, NotYet: true},
			{Key: "table.inside", Kind: schema.Count, Default: int64(5)},
		}},
		{Name: "agents", Named: true, Settings: []schema.Setting{{Key: "table.inside", Kind: schema.Count, Default: int64(6)}}},
		{Name: "targets", Named: true, Settings: []schema.Setting{{Kind: placeList{}}}},
	}
	page := "```toml\n[serve]\nnamed = 8  # default: 7\nshell.other = \"y\"\n# later = \"z\"\nold = 1\n[serve.table]\ninside = 5\n[agents.ops.table]\ninside = 6\n[targets]\na = \"b\"\n```\nmissing = 1\n"
	want := []string{
		"serve.later has no effect yet, and does not say so", "serve.missing is not named", "serve.old is no setting",
		"serve.shell.other does not say its default",
	}
	if got := undocumented(sections, page); !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}
