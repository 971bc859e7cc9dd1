package schema_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/cmd/parley/config/schema"
)

// A shop is the struct that the settings in these tests fill.
type shop struct {
	Most   int
	Level  int
	Open   time.Duration
	Labels []label
}

type label string

// sections declares three sections: one with a single table, one with named tables, and one with named keys.
func sections() []schema.Section {
	table := []schema.Setting{
		{Key: "most", Kind: schema.Count, Default: int64(3), Least: 1, Reload: schema.AtOnce, Fill: schema.Into(func(s *shop) any { return &s.Most })},
		{Key: "shelf.level", Kind: schema.Count, Default: int64(30), Least: 1, Reload: schema.AtOnce, Fill: schema.Into(func(s *shop) any { return &s.Level })},
		{Key: "open", Kind: schema.Duration, Default: time.Hour, Least: 1, Fill: schema.Into(func(s *shop) any { return &s.Open })},
		{Key: "labels", Kind: schema.Texts, OneOf: []string{"a", "b", "c"}, Planned: []string{"c"}, Example: `["a"]`, Reload: "shops", Fill: schema.Into(func(s *shop) any { return &s.Labels })},
	}
	return []schema.Section{
		{Name: "head", Settings: slices.Clone(table)},
		{Name: "shops", Named: true, Always: "main", Inherit: "defaults", Settings: table},
		{Name: "streets", Named: true, Reload: "shops", Settings: []schema.Setting{{Kind: schema.Texts, Example: `["a"]`, Reload: "shops"}}},
		{Name: "later", Settings: []schema.Setting{{Key: "on", Kind: schema.Truth, Example: "true", NotYet: true}}},
	}
}

// read reads a file with this text, and returns its path, too.
func read(t *testing.T, text string, retired ...schema.Retired) (*schema.Settings, string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "shop.toml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	v := schema.Read(sections(), schema.Source{File: file, Named: true, Env: func(string) (string, bool) { return "", false }, Retired: retired})
	v.TakeEnv()
	v.Complete()
	s, err := v.Settings()
	return s, file, err
}

func must(t *testing.T, text string, retired ...schema.Retired) (s *schema.Settings, file string) {
	t.Helper()
	s, file, err := read(t, text, retired...)
	if err != nil {
		t.Fatal(err)
	}
	return s, file
}

// shopOf returns a shop filled with the settings of a table.
func shopOf(s *schema.Settings, table string) (filled shop) {
	s.Fill(table, &filled)
	return filled
}

func TestTables(t *testing.T) {
	s, _ := must(t, "[head]\nlabels = [\"b\", \"a\"]\n[shops.defaults]\nmost = 7\n[shops.corner]\nopen = \"2d\"\n")
	if got := shopOf(s, "head"); got.Most != 3 || !slices.Equal(got.Labels, []label{"b", "a"}) {
		t.Errorf("the table has %+v", got)
	}
	if got := s.Names("shops"); !slices.Equal(got, []string{"corner", "main"}) {
		t.Errorf("the tables are %q", got)
	}
	if got := shopOf(s, "shops.corner"); got.Most != 7 || got.Open != 48*time.Hour {
		t.Errorf("a table beside the one that all start from has %+v", got)
	}
	if got := shopOf(s, "shops.main"); got.Most != 7 || got.Open != time.Hour {
		t.Errorf("the table that is always there has %+v", got)
	}
}

// A setting may be in a table below the table of its section.
func TestNestedTables(t *testing.T) {
	old, file := must(t, "[shops.defaults.shelf]\nlevel = 4\n[shops.corner]\nshelf = { level = 5 }\n[head.shelf]\nlevel = 6\n")
	if main, corner := shopOf(old, "shops.main").Level, shopOf(old, "shops.corner").Level; main != 4 || corner != 5 {
		t.Errorf("main has %d and corner %d, want 4 and 5", main, corner)
	}
	var out strings.Builder
	if err := old.Print(&out, "a head"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"# a head\n", "\nshelf.level = 5  # " + file + ":4\n", "\nshelf.level = 6  # " + file + ":6\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not print %q:\n%s", want, out.String())
		}
	}
	next, _ := must(t, "[shops.corner]\n[shops.corner.shelf]\nlevel = 7\n")
	_, changes := schema.Merge(old, next)
	if want := []string{"head.shelf.level", "shops.corner.shelf.level", "shops.main.shelf.level"}; !slices.Equal(changes.Live, want) {
		t.Errorf("a reload takes %q, want %q", changes.Live, want)
	}
	for text, want := range map[string]string{
		"[shops.main.shelf]\nlevell = 1\n":  "shops.main.shelf.levell: unknown key: did you mean level?",
		"[shops.main]\nshelf = 1\n":         "shops.main.shelf: has to be a table, not an integer: write [shops.main.shelf]",
		"[shops.main.shelf]\nlevel = 0\n":   "shops.main.shelf.level: too small",
		"[shops.main]\nshlf = 1\n":          "shops.main.shlf: unknown key: did you mean shelf?",
		"[head.shelf]\nlevel = \"1\"\n":     "head.shelf.level: has to be an integer, not a string: write something like level = 30",
		"[head]\nlabels = [\"a\", \"d\"]\n": `head.labels: unknown value "d": write one of "a", "b", "c"`,
	} {
		if _, _, err := read(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is told as %v, want %s", text, err, want)
		}
	}
}

// A retired key works like its successor, and causes a warning.
func TestRetiredKeys(t *testing.T) {
	s, file := must(t, "[head]\nlimit = 7\nturbo = \"yes\"\n",
		schema.Retired{Old: "head.limit", Now: "most", Tip: "write most"}, schema.Retired{Old: "head.turbo", Tip: "remove it"})
	if got := shopOf(s, "head").Most; got != 7 {
		t.Errorf("most = %d, want the retired key's 7", got)
	}
	want := []string{
		file + ":2: head.limit: this key is going away: write most",
		file + ":3: head.turbo: this key is going away: remove it",
	}
	if !slices.Equal(s.Notices(), want) {
		t.Errorf("notices = %q, want %q", s.Notices(), want)
	}
}

// Sections, settings and values without an effect yet cause a notice.
func TestNotYet(t *testing.T) {
	s, file := must(t, "[later]\non = true\n[shops.main]\nlabels = [\"a\", \"c\"]\n")
	want := []string{file + ":4: shops.main.labels: \"c\": no effect yet", file + ":1: [later]: no effect yet"}
	if !slices.Equal(s.Notices(), want) {
		t.Errorf("notices = %q, want %q", s.Notices(), want)
	}
}

// A setting that names tables of a section waits for a restart if those tables do.
func TestReloadBesideOtherTables(t *testing.T) {
	const shops = "[shops.corner]\n"
	old, _ := must(t, shops)
	for text, want := range map[string]schema.Changes{
		shops + "[streets]\nlong = [\"corner\"]\n":            {Live: []string{"streets.long"}},
		shops + "[shops.new]\n[streets]\nlong = [\"new\"]\n":  {Restart: []string{"shops.new", "streets.long"}},
		shops + "open = \"2h\"\nmost = 4\nlabels = [\"b\"]\n": {Live: []string{"shops.corner.labels", "shops.corner.most"}, Restart: []string{"shops.corner.open"}},
	} {
		next, _ := must(t, text)
		merged, changes := schema.Merge(old, next)
		if !slices.Equal(changes.Live, want.Live) || !slices.Equal(changes.Restart, want.Restart) {
			t.Errorf("%q: %q, want %q", text, changes, want)
		}
		if taken := len(want.Live) > 0 && want.Live[0] == "streets.long"; (len(merged.Texts("streets.long")) > 0) != taken {
			t.Errorf("%q: merged has %q", text, merged.Texts("streets.long"))
		}
	}
}

// A safe is the struct that the secrets in a test fill.
type safe struct {
	One  schema.Secret
	Some []string
}

// A secret that can't be read stops only callers who need secrets, whatever the kind of its setting.
func TestWithoutSecrets(t *testing.T) {
	declared := []schema.Section{{Name: "keys", Settings: []schema.Setting{
		{Key: "one", Kind: schema.Text, Secret: true, Fill: schema.Into(func(s *safe) any { return &s.One })},
		{Key: "some", Kind: schema.Texts, Secret: true, Fill: schema.Into(func(s *safe) any { return &s.Some })},
	}}}
	file := filepath.Join(t.TempDir(), "keys.toml")
	if err := os.WriteFile(file, []byte("[keys]\none = \"${NO_KEY}\"\nsome = [\"KEY=${NO_KEY}\"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	src := schema.Source{File: file, Env: func(string) (string, bool) { return "", false }}
	_, err := schema.Read(declared, src).Settings()
	if stop, ok := errors.AsType[*schema.Error](err); !ok || len(stop.Problems) != 2 {
		t.Errorf("who needs the secrets is told %v", err)
	}
	src.WithoutSecrets = true
	s, err := schema.Read(declared, src).Settings()
	if err != nil {
		t.Fatal(err)
	}
	var filled safe
	s.Fill("keys", &filled)
	if filled.One == "" || len(filled.Some) > 0 {
		t.Errorf("who needs none gets %q and %q", string(filled.One), filled.Some)
	}
}
