package server

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"parley/cmd/parley/config"
)

// In the list of parts, each part that is marked to run has a Run method, each part has some ability, and no name
// occurs twice.
func TestWhatTheListSaysOfParts(t *testing.T) {
	names := map[string]bool{}
	for _, p := range newTestServer(t, "").parts {
		if _, ok := p.is.(runner); p.runs && !ok {
			t.Errorf("%s cannot run: %T has no Run", p.name, p.is)
		}
		one := []part{p}
		if len(having[loader](one))+len(having[runner](one))+len(having[reloader](one))+len(having[forgetter](one))+len(having[routed](one))+len(having[measured](one))+
			len(having[checked](one))+len(having[host](one))+len(having[closer](one)) == 0 {
			t.Errorf("%s has none of the abilities: does a method of %T have another signature?", p.name, p.is)
		}
		if names[p.name] {
			t.Errorf("%s stands twice", p.name)
		}
		names[p.name] = true
	}
}

// docs/api.yaml describes each route that the API or a part serves, and each described route is served.
func TestTheDescriptionHasEveryRoute(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "api.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var description struct {
		Paths map[string]map[string]any
	}
	if err := yaml.Unmarshal(page, &description); err != nil {
		t.Fatal(err)
	}
	var described, served []string
	for path, operations := range description.Paths {
		for method := range operations {
			if method != "parameters" {
				described = append(described, strings.ToUpper(method)+" "+path)
			}
		}
	}
	for _, r := range newTestServer(t, "").front.newAPI(false).Routes() {
		served = append(served, strings.TrimSuffix(r.Pattern, "{$}")) // "{$}" makes the pattern match this path alone
	}
	slices.Sort(described)
	slices.Sort(served)
	if !slices.Equal(served, described) {
		t.Errorf("served:\n%s\ndescribed:\n%s", strings.Join(served, "\n"), strings.Join(described, "\n"))
	}
}

// If a part can't load, the start fails, and releases the home for the next process.
func TestAStartThatFailsLeavesTheHome(t *testing.T) {
	home := t.TempDir()
	open := func(folder string) (*Server, error) {
		file := filepath.Join(t.TempDir(), "parley.toml")
		if err := os.WriteFile(file, []byte("[knowledge]\ndir = \""+folder+"\"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Load(config.Options{File: file, Home: home})
		if err != nil {
			t.Fatal(err)
		}
		return Open(t.Context(), Config{Settings: cfg, Role: Both, Log: slog.New(slog.DiscardHandler)})
	}
	if _, err := open(filepath.Join(home, "missing")); err == nil || !strings.Contains(err.Error(), "knowledge.dir") {
		t.Fatalf("a folder that there is not: %v", err)
	}
	s, err := open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
