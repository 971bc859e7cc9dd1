package config

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// undocumented compares the declarations with the lines of the page's TOML: which
// settings it does not name, whose default it does not say, and which names on it
// are of no setting.
func undocumented(sections []section, page string) (wrong []string) {
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
		for _, set := range sec.settings {
			path := sec.name + "." + set.key
			if sec.keysAreNames() {
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
			case set.def != nil && !says(text, toTOML((&value{set: &set, v: set.def}).shown())):
				wrong = append(wrong, path+" does not say its default")
			case set.hasNoEffectYet() && !strings.Contains(text, notYet):
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

// declaredTable is a table's name as declarations have it: without the name that the
// operator gives, so that [agents.ops.shell] is agents.shell and [tools.shell] stays.
func declaredTable(sections []section, name string) string {
	parts := strings.Split(name, ".")
	named := slices.ContainsFunc(sections, func(s section) bool { return s.named && s.name == parts[0] })
	if named && len(parts) > 1 {
		parts = slices.Delete(parts, 1, 2)
	}
	return strings.Join(parts, ".")
}

// says tells whether a line holds a value as a whole: 3 is not in 30.
func says(line, value string) bool {
	return regexp.MustCompile(`(^|\W)` + regexp.QuoteMeta(value) + `(\W|$)`).MatchString(line)
}

func TestDocumentationNamesEverySetting(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range undocumented(declarations(nil), string(page)) {
		t.Errorf("docs/configuration.md: %s", wrong)
	}
}

// The test above fails for what a page can lack.
func TestUndocumented(t *testing.T) {
	sections := []section{
		{name: "serve", settings: []setting{
			{key: "named", kind: asCount, def: int64(7), since: first},
			{key: "missing", kind: asText, since: first},
			{key: "shell.other", kind: asText, def: "x", since: first},
			{key: "later", kind: asText, since: notYet},
			{key: "table.inside", kind: asCount, def: int64(5), since: first},
		}},
		{name: "agents", named: true, settings: []setting{{key: "table.inside", kind: asCount, def: int64(6), since: first}}},
		{name: "targets", named: true, settings: []setting{{kind: asPlaces, since: first}}},
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
