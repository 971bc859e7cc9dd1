package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/bus/redisbus/server"
	"parley/channels/sqlbook"
	"parley/cmd/parley/config"
	"parley/cmd/parley/data/home"
	"parley/sessions/sqldb"
	"parley/sessions/sqlstore"
)

// judged checks that there is one finding with that state and those words, or none if words is empty.
func judged(t *testing.T, what string, found []Finding, state, words string) {
	t.Helper()
	if words == "" {
		if len(found) > 0 {
			t.Errorf("%s: it says %+v", what, found)
		}
		return
	}
	if len(found) != 1 || found[0].State != state || !strings.Contains(found[0].Detail+" → "+found[0].Remedy, words) || found[0].Remedy == "" {
		t.Errorf("%s: it says %+v, want %s and %q", what, found, state, words)
	}
}

func TestDoctorOnRedis(t *testing.T) {
	for _, c := range []struct {
		what         string
		change       func(*server.Health)
		state, words string
	}{
		{"as it should be", func(*server.Health) {}, "", ""},
		{"each write to disk", func(h *server.Health) { h.Fsync = "always" }, "", ""},
		{"a rented one", func(h *server.Health) { h.Fsync = "" }, "", ""},
		{"an old one", func(h *server.Health) { h.Version = "6.0.16" }, wrong, "use Redis 6.2 or newer"},
		{"eviction", func(h *server.Health) { h.Policy = "allkeys-lru" }, wrong, "set maxmemory-policy noeviction"},
		{"in memory", func(h *server.Health) { h.AOF = false }, wrong, "set appendonly yes"},
		{"a full disk", func(h *server.Health) { h.AOFFails = true }, wrong, "room on its disk"},
		{"never flushed", func(h *server.Health) { h.Fsync = "no" }, note, "set appendfsync everysec"},
		{"a replica", func(h *server.Health) { h.Replica = true }, wrong, "name the master"},
		{"a node of a Cluster", func(h *server.Health) { h.Mode = "cluster" }, wrong, "redis+cluster://"},
		{"not a Cluster", func(h *server.Health) { h.Mode, h.Clustered = "standalone", true }, wrong, "redis://"},
		{"a Cluster", func(h *server.Health) { h.Mode, h.Clustered, h.Group = "cluster", true, group(6, 1) }, "", ""},
		{"a node away", func(h *server.Health) { h.Mode, h.Clustered, h.Group = "cluster", true, group(6, 1, "a:1: refused") }, wrong, "1 of 6 nodes of the Cluster didn't answer: a:1: refused"},
		{"behind Sentinels", func(h *server.Health) { h.Group = group(3, 1) }, "", ""},
		{"behind two Sentinels", func(h *server.Health) { h.Group = group(2, 1) }, note, "name all of them"},
		{"without a replica", func(h *server.Health) { h.Group = group(3, 0) }, note, "start a replica"},
		{"a Sentinel away", func(h *server.Health) { h.Group = group(3, 1, "a:1: refused") }, wrong, "1 of 3 Sentinels didn't answer: a:1: refused"},
		{"almost full", func(h *server.Health) { h.UsedMemory = 90 << 20 }, note, "raise maxmemory"},
		{"ahead", func(h *server.Health) { h.Skew = 1500 * time.Millisecond }, wrong, "1.5s ahead of"},
		{"behind", func(h *server.Health) { h.Skew = -time.Minute }, wrong, "1m0s behind"},
	} {
		h := server.Health{
			Info:  server.Info{Version: "7.0.15", Policy: "noeviction", AOF: true, Skew: 300 * time.Millisecond},
			Fsync: "everysec", UsedMemory: 10 << 20, MaxMemory: 100 << 20,
		}
		c.change(&h)
		judged(t, c.what, judgeRedis(h), c.state, c.words)
	}
}

func group(asked, online int, faults ...string) *server.Group {
	g := &server.Group{Online: online}
	g.Asked, g.Faults = asked, faults
	return g
}

func TestDoctorOnPostgreSQL(t *testing.T) {
	store, book := sqlstore.Schema(), sqlbook.Schema()
	for _, c := range []struct {
		what         string
		change       func(*sqldb.Health)
		state, words string
	}{
		{"as it should be", func(*sqldb.Health) {}, "", ""},
		{"empty", func(h *sqldb.Health) { h.Versions, h.RequiredVersions = nil, nil }, "", ""},
		{"empty, and may not be filled", func(h *sqldb.Health) { h.Versions, h.RequiredVersions, h.MayCreateTables = nil, nil, false }, wrong, "GRANT CREATE"},
		{"filled, and no more is to be made", func(h *sqldb.Health) { h.MayCreateTables = false }, "", ""},
		{"an old one", func(h *sqldb.Health) { h.Version = 130012 }, wrong, "use PostgreSQL 14 or newer"},
		{"a replica", func(h *sqldb.Health) { h.ReadOnly = true }, wrong, "name the primary"},
		{"no fsync", func(h *sqldb.Health) { h.Fsync = "off" }, wrong, "postgresql.conf"},
		{"torn pages", func(h *sqldb.Health) { h.FullPageWrites = "off" }, wrong, "postgresql.conf"},
		{"late commits", func(h *sqldb.Health) { h.SynchronousCommit = "off" }, wrong, "remove synchronous_commit"},
		{"too few connections", func(h *sqldb.Health) { h.MaxConns = 10 }, wrong, "raise max_connections"},
		{"few connections", func(h *sqldb.Health) { h.MaxConns = 30 }, note, "pool_max_conns"},
		{"a newer schema", func(h *sqldb.Health) { h.RequiredVersions[store.Name] = 99 }, wrong, "use the newer release"},
		{"an older schema", func(h *sqldb.Health) { h.Versions[book.Name]-- }, note, "the schema of the book"},
		{"behind", func(h *sqldb.Health) { h.ClockSkew = -2 * time.Second }, wrong, "2s behind"},
	} {
		h := sqldb.Health{
			Version: 150004, Fsync: "on", SynchronousCommit: "on", FullPageWrites: "on", MaxConns: 97, ConnsPerProcess: 12, MayCreateTables: true,
			Versions:         map[string]int{store.Name: len(store.Postgres), book.Name: len(book.Postgres)},
			RequiredVersions: map[string]int{store.Name: 0, book.Name: 0},
		}
		c.change(&h)
		judged(t, c.what, judgePostgres(h), c.state, c.words)
	}
}

func TestDoctorOnTheWorkspace(t *testing.T) {
	for _, c := range []struct{ what, setting, marker, state, words string }{
		{"alone", "", "", fine, ""},
		{"the store's", "[store]\nurl = \"postgres://u:secret@db/one\"\n", "db/one", fine, ""},
		{"not marked yet", "[store]\nurl = \"postgres://u:secret@db/one\"\n", "", fine, ""},
		{"another store's", "[store]\nurl = \"postgres://u:secret@db/one\"\n", "db/two", wrong, "each store its own"},
		{"a fleet in the home", "[store]\nurl = \"postgres://u:secret@db/one\"\n[bus]\nurl = \"redis://r\"\n", "db/one", note, "all of them share"},
	} {
		homeDir := t.TempDir()
		root := filepath.Join(homeDir, "workspaces")
		if err := os.Mkdir(root, 0o700); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(homeDir, "parley.toml")
		if err := os.WriteFile(file, []byte(c.setting), 0o600); err != nil {
			t.Fatal(err)
		}
		if c.marker != "" {
			if err := os.WriteFile(filepath.Join(root, home.MarkerFile), []byte(c.marker+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cfg, err := config.Load(config.Options{File: file, Home: homeDir})
		if err != nil {
			t.Fatal(err)
		}
		f := checkWorkspace(cfg, cfg.Folders()[0])
		if f.State != c.state || !strings.Contains(f.Remedy, c.words) || strings.Contains(fmt.Sprint(f), "secret") {
			t.Errorf("%s: it says %+v, want %s and %q", c.what, f, c.state, c.words)
		}
		left, err := filepath.Glob(filepath.Join(root, ".doctor-*"))
		if err != nil || len(left) > 0 {
			t.Errorf("%s: it leaves %v, %v", c.what, left, err)
		}
	}
}
