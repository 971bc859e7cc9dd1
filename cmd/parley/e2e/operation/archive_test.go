package operation

import (
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"parley/cmd/parley/parleytest"
	"parley/sessions"
	"parley/sessions/sqldb/sqldbtest"
	"parley/sessions/sqlstore"
)

// writeHome runs a statement on the database of a home that no server uses.
func writeHome(t *testing.T, w *parleytest.World, statement string, args ...any) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(w.Home, "sessions.db"))
	parleytest.Must(t, err)
	_, err = db.ExecContext(t.Context(), statement, args...)
	parleytest.Must(t, err)
	parleytest.Must(t, db.Close())
}

// spokenBefore returns a world in which two people spoke three days ago, and the day on which they did. Nothing is
// archived yet. settings is appended to the configuration.
func spokenBefore(t *testing.T, settings string) (w *parleytest.World, day string) {
	t.Helper()
	w = parleytest.New(t, parleytest.EchoModel, "")
	p := w.Serve()
	w.Telegram.Say(2, 2, "xyzzyplugh")
	w.Telegram.Say(3, 3, "xyzzyplugh")
	w.WaitSaid(2, 1)
	w.WaitSaid(3, 1)
	parleytest.WaitFor(t, "the turns to be in the audit", func() bool { return w.Count("sessions.db", "SELECT count(*) FROM audit WHERE kind = 'turn'") == 2 })
	p.Stop()
	was := time.Now().UTC().AddDate(0, 0, -3)
	writeHome(t, w, "UPDATE audit SET at = ?", was.Format("2006-01-02T15:04:05.000000Z"))
	text, err := os.ReadFile(w.File)
	parleytest.Must(t, err)
	parleytest.Must(t, os.WriteFile(w.File, append(text, settings...), 0o600))
	return w, was.Format(time.DateOnly)
}

// archived returns how many files were archived.
func archived(w *parleytest.World) int {
	return w.Count("sessions.db", "SELECT count(*) FROM audit_files WHERE archived > 0")
}

// Each day is archived once, even if the server is killed at any step. The archive is complete, even after a person is
// forgotten.
func TestTheAuditIsArchivedWhereverTheServerIsKilled(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"archive:begun", "archive:page", "archive:page/2", "archive:sealed", "archive:put", "archive:recorded"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			w, day := spokenBefore(t, fmt.Sprintf("\n[audit]\narchive = %q\n", dir))
			w.Serve("PARLEY_KILL_AT=" + at).WaitKilled()
			file := filepath.Join(dir, "audit-"+day+".jsonl.gz")
			was, err := os.ReadFile(file)
			if there := at == "archive:put" || at == "archive:recorded"; there != (err == nil) {
				t.Errorf("the file: %v", err)
			}
			p := w.Serve()
			parleytest.WaitFor(t, "the day to be archived", func() bool { return archived(w) == 1 })
			if now, err := os.ReadFile(file); err != nil || was != nil && string(now) != string(was) {
				t.Errorf("the file has changed: %v", err)
			}
			for range 2 {
				out, errs, code := w.Run("audit", "verify")
				if code != 0 || !strings.Contains(out, "Intact from "+day+" to "+day+": 1 files with 2 records.") {
					t.Errorf("verify: %d %s %s", code, out, errs)
				}
				if out, errs, code := w.Run("forget", "--yes", "--user", "telegram:2"); code != 0 || !strings.Contains(out, "lines in the audit's archive") {
					t.Errorf("forget: %d %s %s", code, out, errs)
				}
			}
			if n := w.Count("sessions.db", "SELECT count(*) FROM audit_keys WHERE subject LIKE '%telegram:2'"); n != 0 {
				t.Errorf("%d keys are left", n)
			}
			if n := w.Count("sessions.db", "SELECT count(*) FROM audit_keys WHERE subject LIKE '%telegram:3'"); n != 2 {
				t.Errorf("there are %d keys of somebody else", n)
			}
			p.Stop()
		})
	}
}

// In a fleet, one process archives. If it is killed, another one finishes the day.
func TestAFleetArchivesTheAudit(t *testing.T) {
	t.Parallel()
	redis := os.Getenv("PARLEY_TEST_REDIS_URL")
	if redis == "" {
		t.Skip("there is no PARLEY_TEST_REDIS_URL: run it as `.ci/servers go test …`, or with make test")
	}
	dir, database := t.TempDir(), sqldbtest.New(t)
	store, err := sqlstore.Open(t.Context(), database)
	parleytest.Must(t, err)
	defer store.Close()
	was := time.Now().UTC().AddDate(0, 0, -3)
	for range 500 {
		parleytest.Must(t, store.Audit(t.Context(), sessions.AuditRecord{At: was, Kind: sessions.AuditTool, By: "telegram:2", Session: "main:telegram:2", Tool: "read_file", Result: "ok"}))
	}
	w := parleytest.New(t, parleytest.EchoModel, fmt.Sprintf("[bus]\nurl = %q\nprefix = %q\n[store]\nurl = %q\n[workspace]\nroot = %q\n[audit]\narchive = %q\n",
		redis, "test-"+rand.Text(), database, t.TempDir(), dir))
	w.Serve("PARLEY_KILL_AT=archive:page/2").WaitKilled()
	w.ServeAs("gateway")
	w.ServeAs("worker")
	parleytest.WaitFor(t, "the day to be archived", func() bool {
		s, err := store.Archive().State(t.Context())
		return err == nil && s.Newest.Number == 1
	})
	if out, errs, code := w.Run("audit", "verify"); code != 0 || !strings.Contains(out, "1 files with 500 records") {
		t.Errorf("verify: %d %s %s", code, out, errs)
	}
}

// The operator can see what was archived, what was changed in it, and what is wrong with the settings.
func TestTheOperatorSeesTheArchive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w, day := spokenBefore(t, fmt.Sprintf("\n[audit]\narchive = %q\n", dir))
	if out, _, code := w.Run("doctor"); code != 0 || !strings.Contains(out, "no day has been archived yet") {
		t.Errorf("doctor: %d %s", code, out)
	}
	if out, _, code := w.Run("audit", "verify"); code != 0 || !strings.Contains(out, "no files yet") {
		t.Errorf("verify: %d %s", code, out)
	}
	p := w.Serve()
	parleytest.WaitFor(t, "the day to be archived", func() bool { return archived(w) == 1 })
	out, errs, code := w.Run("metrics")
	if code != 0 || !strings.Contains(out, "parley_audit_archive_failing_seconds 0") || !strings.Contains(out, "parley_audit_archive_age_seconds ") {
		t.Errorf("metrics: %d %s %s", code, out, errs)
	}
	p.Stop()
	if out, _, code := w.Run("doctor"); code != 0 || !strings.Contains(out, "the last archived day is "+day) {
		t.Errorf("doctor: %d %s", code, out)
	}
	file := filepath.Join(dir, "audit-"+day+".jsonl.gz")
	was, err := os.ReadFile(file)
	parleytest.Must(t, err)
	parleytest.Must(t, os.WriteFile(file, was[:len(was)-20], 0o600))
	if out, errs, code := w.Run("audit", "verify"); code != 1 || !strings.Contains(out, day+", line ") || !strings.Contains(errs, "isn't as it was archived") {
		t.Errorf("verify: %d %s %s", code, out, errs)
	}
	var report struct{ Break struct{ Day string } }
	out, _, code = w.Run("--json", "audit", "verify")
	parleytest.Must(t, json.Unmarshal([]byte(out), &report))
	if code != 1 || report.Break.Day != day {
		t.Errorf("verify: %d %s", code, out)
	}
	parleytest.Must(t, os.Remove(file))
	if out, _, code := w.Run("audit", "verify"); code != 1 || !strings.Contains(out, day+": the file is missing") {
		t.Errorf("verify: %d %s", code, out)
	}
	if _, errs, code := w.Run("audit", "verify", "--from", "yesterday"); code != 2 || !strings.Contains(errs, "isn't a day") {
		t.Errorf("verify: %d %s", code, errs)
	}
	parleytest.Must(t, os.RemoveAll(dir))
	if out, _, code := w.Run("doctor"); code != 1 || !strings.Contains(out, "doesn't exist") {
		t.Errorf("doctor: %d %s", code, out)
	}
	if _, errs, code := w.Run("serve"); code != 78 || !strings.Contains(errs, "audit.archive") || !strings.Contains(errs, "name an existing folder") {
		t.Errorf("serve: %d %s", code, errs)
	}
}

// If a bucket refuses an upload, the bot still answers people, and the day's audit stays in the database until the
// bucket accepts it.
func TestTheAuditIsArchivedInABucket(t *testing.T) {
	t.Parallel()
	stored := s3mem.New()
	parleytest.Must(t, stored.CreateBucket("audit"))
	fake := gofakes3.New(stored).Server()
	var refuse atomic.Bool
	refuse.Store(true)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refuse.Load() {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		fake.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	w, day := spokenBefore(t, fmt.Sprintf("\n[notices]\nafter = \"1s\"\n[audit]\narchive = \"s3://audit/one\"\nendpoint = %q\nregion = \"us-east-1\"\naccess_key = \"access-key\"\nsecret_key = \"very-secret-key\"\n", server.URL))
	p := w.Serve()
	parleytest.WaitFor(t, "the failure to be recorded", func() bool {
		return w.Count("sessions.db", "SELECT count(*) FROM audit_archive WHERE failing > 0") == 1
	})
	w.Telegram.Say(2, 2, "hello")
	w.WaitSaid(2, 2)
	if out, _, code := w.Run("doctor"); code != 1 || !strings.Contains(out, "nothing can be written to it") || strings.Contains(out, "very-secret-key") {
		t.Errorf("doctor: %d %s", code, out)
	}
	if out, _, _ := w.Run("config", "check"); strings.Contains(out, "very-secret-key") || !strings.Contains(out, `secret_key = "***"`) {
		t.Errorf("config check: %s", out)
	}
	p.Stop()
	// Owners are told once, after the bucket has refused uploads for a day.
	writeHome(t, w, "UPDATE audit_archive SET failing = ?", time.Now().Add(-25*time.Hour).UnixMicro())
	w.Telegram.Say(1, 1, "/start")
	p = w.Serve()
	parleytest.WaitFor(t, "the owner to be told", func() bool {
		for _, text := range parleytest.Texts(w.Telegram.Sent(1)) {
			if strings.Contains(text, "The audit hasn't been archived since") {
				return true
			}
		}
		return false
	})
	p.Stop()
	refuse.Store(false)
	p = w.Serve()
	parleytest.WaitFor(t, "the day to be archived", func() bool { return archived(w) == 1 })
	if out, errs, code := w.Run("audit", "verify"); code != 0 || !strings.Contains(out, "Intact from "+day) {
		t.Errorf("verify: %d %s %s", code, out, errs)
	}
	p.Stop()
}
