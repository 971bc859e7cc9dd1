package home

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/cmd/parley/config"
	"parley/cmd/parley/data/homedb"
	"parley/cmd/parley/data/migrate"
)

func TestSharedBusOrStoreBesideDataInTheHome(t *testing.T) {
	t.Parallel()
	const (
		redis    = "[bus]\nurl = \"redis://127.0.0.1:1\"\n"
		postgres = "[store]\nurl = \"postgres://u:secret@127.0.0.1:1/d\"\n"
	)
	for _, c := range []struct{ name, text, file, want string }{
		{"nothing left", redis + postgres, "token", ""},
		{"all in the home", "", BusFile, ""},
		{"the mail in the home", redis + postgres, BusFile, "bus.url"},
		{"the logs in the home", postgres, StoreFile, "store.url"},
		{"the book in the home", postgres, homedb.BookFile, "store.url"},
		{"mail at home, logs away", postgres, BusFile, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "parley.toml")
			for path, text := range map[string]string{file: c.text, filepath.Join(dir, c.file): "x"} {
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			cfg, err := config.Load(config.Options{File: file, Home: dir})
			if err != nil {
				t.Fatal(err)
			}
			err = CheckData(cfg)
			if c.want == "" {
				if err != nil {
					t.Errorf("it is refused: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "parley.toml:2") ||
				!strings.Contains(err.Error(), "parley migrate") || strings.Contains(err.Error(), "secret") {
				t.Errorf("it says %v, want %s, the line and migrate", err, c.want)
			}
		})
	}
}

// A fleet's home has its data in another store. The Compose file with SQLite, which mounts the same volume, starts no
// second bot in it, and the error names the fleet's store.
func TestAFleetsHomeIsNotServedWithoutItsStore(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "parley.toml")
	load := func(text string) *config.Config {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Load(config.Options{File: file, Home: dir, Env: func(string) (string, bool) { return "", false }})
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	fleet := load("[bus]\nurl = \"redis://127.0.0.1:1\"\n[store]\nurl = \"postgres://u:secret@127.0.0.1:1/d\"\n")
	if err := errors.Join(CheckData(fleet), NoteWhereDataIs(fleet), CheckData(fleet)); err != nil {
		t.Fatal(err)
	}
	err := CheckData(load(""))
	if _, setting := errors.AsType[*config.SettingError](err); !setting || !strings.Contains(err.Error(), "compose.fleet.yaml") || strings.Contains(err.Error(), "secret") {
		t.Errorf("without the store: %v", err)
	}
}

func TestSharedBusNeedsSharedStore(t *testing.T) {
	t.Setenv("REDIS_URL", "redis://127.0.0.1:1")
	t.Setenv("DATABASE_URL", "")
	file := filepath.Join(t.TempDir(), "parley.toml")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(config.Options{File: file, Home: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := CheckData(cfg); err == nil || !strings.Contains(err.Error(), "REDIS_URL") || !strings.Contains(err.Error(), "[store] url") {
		t.Errorf("it says %v, want the variable and what is missing", err)
	}
}

func TestHomeOfWhichSomethingWasTaken(t *testing.T) {
	t.Parallel()
	const (
		redis    = "[bus]\nurl = \"redis://r\"\n"
		postgres = "[store]\nurl = \"postgres://p/d\"\n"
	)
	done := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	all := migrate.Note{ID: "x", Parts: []string{migrate.PartStore, migrate.PartBus}, Store: "p/d", Bus: "r", Done: done}
	logs := migrate.Note{ID: "x", Parts: []string{migrate.PartStore}, Store: "p/d", Done: done}
	begun := all
	begun.Done = time.Time{}
	for _, c := range []struct {
		name, text string
		note       migrate.Note
		want       string
	}{
		{"all, served from there", redis + postgres, all, ""},
		{"all, served from here", "", all, "moved to p/d on 2026-03-04"},
		{"all, the mail served from here", postgres, all, "moved to r on 2026-03-04"},
		{"the logs, served from there", postgres, logs, ""},
		{"the logs, served from here", "", logs, "moved to p/d"},
		{"the logs, the mail served from elsewhere", redis + postgres, logs, "parley migrate"},
		{"begun, served from here", "", begun, "isn't finished"},
		{"begun, served from there", redis + postgres, begun, "isn't finished"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			raw, err := json.Marshal(c.note)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "parley.toml")
			for path, text := range map[string]string{
				file: c.text, migrate.Path(dir): string(raw), filepath.Join(dir, BusFile): "x", filepath.Join(dir, StoreFile): "x", filepath.Join(dir, homedb.BookFile): "x",
			} {
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			cfg, err := config.Load(config.Options{File: file, Home: dir})
			if err != nil {
				t.Fatal(err)
			}
			switch err := CheckData(cfg); {
			case c.want == "" && err != nil:
				t.Errorf("it is refused: %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("it says %v, want %q", err, c.want)
			}
		})
	}
}
