package doctor

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/cmd/parley/config"
	"parley/cmd/parley/data/home"
	"parley/cmd/parley/hometest"
	"parley/sessions"
	"parley/sessions/archive"
	"parley/sessions/archive/folder"
	"parley/sessions/sqlstore"
)

func TestDoctorOnTheArchive(t *testing.T) {
	cfg := &config.Config{Home: t.TempDir()}
	if got := checkArchive(t.Context(), cfg); got != nil {
		t.Errorf("without an archive: %+v", got)
	}
	want := func(state, detail string) {
		t.Helper()
		got := checkArchive(t.Context(), cfg)
		if len(got) != 1 || got[0].State != state || !strings.Contains(got[0].Detail, detail) || (state == wrong) != (got[0].Remedy != "") {
			t.Errorf("it finds %+v, want %s, %q", got, state, detail)
		}
	}
	cfg.Audit.Archive = filepath.Join(cfg.Home, "none")
	want(wrong, "doesn't exist")
	cfg.Audit.Archive = t.TempDir()
	want(fine, "no day has been archived yet")
	s, err := sqlstore.Open(t.Context(), filepath.Join(cfg.Home, home.StoreFile))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Audit(t.Context(), sessions.AuditRecord{At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Kind: sessions.AuditTool, Result: "ok"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Archive().Want(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	run := func(ready bool, until func(archive.State) bool) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		a := archive.New(archive.Config{
			Table: s.Archive(), Place: folder.New(cfg.Audit.Archive), Spool: t.TempDir(), RecordLifetime: time.Hour, Log: slog.New(slog.DiscardHandler),
		})
		if !ready {
			a.Spool = filepath.Join(cfg.Home, "none") // nothing can be compressed there
		}
		done := make(chan error, 1)
		go func() { done <- a.Run(ctx) }()
		hometest.WaitFor(t, "the archive", func() bool {
			state, err := s.Archive().State(t.Context())
			return err == nil && until(state)
		})
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	run(false, func(s archive.State) bool { return !s.Failing.IsZero() })
	want(wrong, "archiving has failed since")
	run(true, func(s archive.State) bool { return s.Newest.Number == 1 && s.Failing.IsZero() })
	want(fine, "the last archived day is 2026-01-02 (file 1)")
}
