package audit_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"parley/sessions"
	"parley/sessions/audit"
	"parley/sessions/sqlstore"
)

func openStore(t testing.TB) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), filepath.Join(t.TempDir(), "sessions.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func newRecord(session, by, command string) sessions.AuditRecord {
	return sessions.AuditRecord{Kind: sessions.AuditTool, By: by, Session: session, Tool: "exec_shell", Arguments: fmt.Appendf(nil, `{"command":%q}`, command), Result: "ok"}
}

// readRecords returns the records in a file and in its rotated files.
func readRecords(t *testing.T, path string) (all []sessions.AuditRecord, files int) {
	t.Helper()
	found, err := filepath.Glob(path + "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range found {
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		for scan := bufio.NewScanner(file); scan.Scan(); {
			var r sessions.AuditRecord
			if err := json.Unmarshal(scan.Bytes(), &r); err != nil {
				t.Fatalf("%s: %v in %q", name, err, scan.Text())
			}
			all = append(all, r)
		}
	}
	return all, len(found)
}

func TestATrailWritesToStoreAndFile(t *testing.T) {
	store, path := openStore(t), filepath.Join(t.TempDir(), "audit.jsonl")
	trail := audit.New(audit.Config{Store: store, File: audit.NewFile(path, 1<<20), RecordLifetime: time.Hour, Log: slog.New(slog.DiscardHandler)})
	if err := trail.Record(t.Context(), newRecord("main:telegram:1", "telegram:1", "ls")); err != nil {
		t.Fatal(err)
	}
	kept, err := trail.Records(t.Context(), sessions.AuditQuery{Limit: 10})
	if err != nil || len(kept) != 1 || kept[0].At.IsZero() {
		t.Errorf("the store has %+v, %v", kept, err)
	}
	written, _ := readRecords(t, path)
	if len(written) != 1 || string(written[0].Arguments) != `{"command":"ls"}` {
		t.Errorf("the file has %+v", written)
	}
	if about, err := os.Stat(path); err != nil || about.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", about, err)
	}
	// If the store fails, that is reported, and the file still gets the record.
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if err := trail.Record(t.Context(), newRecord("main:telegram:1", "telegram:1", "pwd")); err == nil {
		t.Error("nobody is told that the store has no record")
	}
	if written, _ := readRecords(t, path); len(written) != 2 {
		t.Errorf("the file has %d records", len(written))
	}
	if err := trail.Close(); err != nil {
		t.Fatal(err)
	}
	if err := trail.Record(t.Context(), newRecord("", "", "late")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}

// All files together stay within their bound, and the newest records are kept.
// What is recorded without waiting is in the store and in the file as well.
func TestATrailRecordsSoon(t *testing.T) {
	store, path := openStore(t), filepath.Join(t.TempDir(), "audit.jsonl")
	trail := audit.New(audit.Config{Store: store, File: audit.NewFile(path, 1<<20), RecordLifetime: time.Hour, Log: slog.New(slog.DiscardHandler)})
	if err := trail.RecordSoon(t.Context(), newRecord("main:telegram:1", "telegram:1", "ls")); err != nil {
		t.Fatal(err)
	}
	if err := trail.Record(t.Context(), newRecord("main:telegram:1", "telegram:1", "pwd")); err != nil { // the first is durable with it
		t.Fatal(err)
	}
	kept, err := trail.Records(t.Context(), sessions.AuditQuery{Limit: 10})
	if err != nil || len(kept) != 2 || kept[0].At.IsZero() {
		t.Errorf("the store has %+v, %v", kept, err)
	}
	if written, _ := readRecords(t, path); len(written) != 2 || string(written[0].Arguments) != `{"command":"ls"}` {
		t.Errorf("the file has %+v", written)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if err := trail.RecordSoon(t.Context(), newRecord("main:telegram:1", "telegram:1", "id")); err == nil {
		t.Error("nobody is told that the store has no record")
	}
}

func TestTheSizeOfFilesIsLimited(t *testing.T) {
	path, most := filepath.Join(t.TempDir(), "audit.jsonl"), int64(64<<10)
	file := audit.NewFile(path, most)
	defer file.Close()
	for n := range 2000 {
		r := newRecord("main:telegram:1", "telegram:1", fmt.Sprint(n))
		r.At = time.Now()
		if err := file.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	all, files := readRecords(t, path)
	sum := int64(0)
	found, _ := filepath.Glob(path + "*")
	for _, name := range found {
		about, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		sum += about.Size()
	}
	if sum > most || sum < most/2 || files < 2 {
		t.Errorf("%d files have %d bytes, at most %d are allowed", files, sum, most)
	}
	newest := false
	for _, r := range all {
		newest = newest || string(r.Arguments) == `{"command":"1999"}`
	}
	if !newest {
		t.Error("the newest record is gone")
	}
}

// A day is a file, and what is older than is to be kept goes, in the store too.
func TestOldRecordsAreDeleted(t *testing.T) {
	store, dir := openStore(t), t.TempDir()
	path := filepath.Join(dir, "audit.jsonl")
	now := time.Now()
	for _, old := range []int{9, 8, 3} {
		at := now.AddDate(0, 0, -old)
		aside := path + "." + at.UTC().Format("20060102T150405.000000000")
		if err := os.WriteFile(aside, []byte(`{"kind":"tool","at":"`+at.Format(time.RFC3339)+`"}`+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(aside, at, at); err != nil {
			t.Fatal(err)
		}
		r := newRecord("", "telegram:1", "x")
		r.At = at
		if err := store.Audit(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	other := path + ".mine" // a file of somebody else
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(other, now.AddDate(-1, 0, 0), now.AddDate(-1, 0, 0)); err != nil {
		t.Fatal(err)
	}
	// A bot that has been quiet for days: no write rotates its file.
	last := now.AddDate(0, 0, -20)
	if err := errors.Join(os.WriteFile(path, []byte("{}\n"), 0o600), os.Chtimes(path, last, last), os.WriteFile(path+".new", nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	trail := audit.New(audit.Config{Store: store, File: audit.NewFile(path, 1<<20), RecordLifetime: 7 * 24 * time.Hour, Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- trail.Run(ctx) }()
	for {
		kept, err := store.AuditRecords(t.Context(), sessions.AuditQuery{Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		left, err := filepath.Glob(path + "*")
		if err != nil {
			t.Fatal(err)
		}
		if len(kept) == 1 && len(left) == 2 {
			break
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A new day begins a new file. The others stay as long as there is room for them.
func TestADayIsAFile(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(dir, "audit.jsonl")
		file := audit.NewFile(path, 1<<20)
		for range 30 {
			for range 2 {
				r := newRecord("", "", "x")
				r.At = time.Now()
				if err := file.Write(r); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(24 * time.Hour)
		}
		if all, files := readRecords(t, path); files != 30 || len(all) != 60 {
			t.Errorf("%d records in %d files", len(all), files)
		}
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Anything other than a regular file is refused with an explanation. Opening a named pipe would block until
// somebody reads it.
func TestOnlyRegularFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{path, t.TempDir()} {
		file := audit.NewFile(path, 1<<20)
		_, forgotten := file.Forget(func(sessions.AuditRecord) bool { return true })
		for what, err := range map[string]error{"check": file.Check(), "write": file.Write(newRecord("main:a:b", "a:b", "x")), "forget": forgotten} {
			if err == nil || !strings.Contains(err.Error(), path+" isn't a regular file") {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Forget erases matching records from all files, and changes nothing else.
func TestForgetErasesFromAllFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	file := audit.NewFile(path, 64<<10)
	defer file.Close()
	for n := range 40 {
		for _, person := range []string{"telegram:1", "telegram:2"} {
			r := newRecord("main:"+person, person, "said by "+person+strings.Repeat(" ", n))
			r.At = time.Now()
			if err := file.Write(r); err != nil {
				t.Fatal(err)
			}
		}
	}
	before, files := readRecords(t, path)
	if files < 2 {
		t.Fatal("there is one file: the test cannot fail")
	}
	n, err := file.Forget(func(r sessions.AuditRecord) bool { return r.By == "telegram:1" })
	if err != nil || n != len(before)/2 {
		t.Errorf("forgot %d of %d, %v", n, len(before), err)
	}
	if err := file.Write(newRecord("main:telegram:2", "telegram:2", "said by telegram:2")); err != nil {
		t.Fatal(err)
	}
	after, _ := readRecords(t, path)
	for _, r := range after {
		if r.By == "telegram:1" || strings.Contains(string(r.Arguments), "telegram:1") || r.By == "telegram:2" && len(r.Arguments) == 0 {
			t.Errorf("there is %+v", r)
		}
	}
	if len(after) != len(before)+1 {
		t.Errorf("%d records became %d", len(before), len(after))
	}
}

// BenchmarkFile measures what the file costs in addition to the store's commit.
func BenchmarkFile(b *testing.B) {
	file := audit.NewFile(filepath.Join(b.TempDir(), "audit.jsonl"), 1<<30)
	defer file.Close()
	r := newRecord("main:telegram:1", "telegram:1", strings.Repeat("go test ./... && ", 20))
	r.At = time.Now()
	for b.Loop() {
		if err := file.Write(r); err != nil {
			b.Fatal(err)
		}
	}
}
