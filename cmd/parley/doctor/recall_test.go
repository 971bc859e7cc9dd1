package doctor

import (
	"path/filepath"
	"strings"
	"testing"

	"parley/cmd/parley/config"
	"parley/cmd/parley/data/home"
	"parley/cmd/parley/data/homedb"
	"parley/sessions"
	"parley/sessions/search"
	"parley/sessions/sqldb"
	"parley/sessions/sqlstore"
)

func TestDoctorOnTheIndex(t *testing.T) {
	cfg := &config.Config{Home: t.TempDir()}
	if got := checkIndex(t.Context(), cfg); got != nil {
		t.Errorf("without a home: %+v", got)
	}
	path := filepath.Join(cfg.Home, home.StoreFile)
	before := sqlstore.Schema().SQLite[:2] // of an old release
	db, err := sqldb.Open(t.Context(), path, before)
	if err == nil {
		err = db.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := checkIndex(t.Context(), cfg); got != nil {
		t.Errorf("of a home without an index: %+v", got)
	}
	s, err := sqlstore.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l, err := s.Open(t.Context(), "main:test:1", 1)
	if err != nil {
		t.Fatal(err)
	}
	e, err := sessions.NewEntry("t", sessions.KindText, sessions.Text{Text: "hello"})
	if err == nil {
		err = l.Append(t.Context(), 1, e, e)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := checkIndex(t.Context(), cfg); len(got) != 1 || got[0].State != fine || !strings.Contains(got[0].Detail, "0 entries are indexed; 2 newer ones") {
		t.Errorf("with new entries: %+v", got)
	}
	if _, err := s.Words().Fill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := checkIndex(t.Context(), cfg); len(got) != 1 || got[0].State != fine || got[0].Detail != "2 entries are indexed" {
		t.Errorf("filled: %+v", got)
	}
	if got := judgeIndex(search.State{Indexed: 5, Missing: 3}); got.State != note || got.Remedy == "" {
		t.Errorf("with entries that are missing: %+v", got)
	}
	if got := judgeIndex(search.State{Indexed: 5, Stray: 1}); got.State != wrong || got.Remedy == "" {
		t.Errorf("with rows that are stray: %+v", got)
	}
	if home.StoreFile != homedb.File {
		t.Errorf("the store is in %s", home.StoreFile)
	}
}
