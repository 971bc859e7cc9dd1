package archive_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/sessions"
	"parley/sessions/archive"
	"parley/sessions/archive/folder"
	"parley/sessions/sqldb"
	"parley/sessions/sqldb/sqldbtest"
	"parley/sessions/sqlstore"
	"parley/sessions/sqlstore/sqlstoretest"
)

const (
	anna    = "telegram:42"
	berta   = "slack:U7"
	private = "main:telegram:42"
	group   = "main:telegram:-100"
	secret  = "xyzzyplugh"
	oneDay  = 24 * time.Hour
)

// monday is the first day of the records.
func monday() time.Time { return time.Date(2030, 1, 7, 0, 0, 0, 0, time.UTC) }

// timeAfterDays returns a time at which that many days since monday are over and archived.
func timeAfterDays(n int) time.Time { return monday().Add(time.Duration(n)*oneDay + time.Hour) }

// toolCallRecord returns the record of a tool call on a day.
func toolCallRecord(day int, session, person string) sessions.AuditRecord {
	return sessions.AuditRecord{
		At: monday().Add(time.Duration(day)*oneDay + 9*time.Hour), Kind: sessions.AuditTool, By: person, Agent: "main", Session: session, Turn: session + ":" + secret, Call: "call_" + secret,
		Tool: "exec_shell", Arguments: json.RawMessage(`{"command":"` + secret + `"}`), Verdict: "allow", Result: "ok", ExitCode: new(int), Bytes: 12, Elapsed: 34, Detail: berta,
	}
}

func addRecords(t testing.TB, s *sqlstore.Store, records ...sessions.AuditRecord) {
	t.Helper()
	for _, r := range records {
		if err := s.Audit(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
}

// addSessions creates sessions in which these people have spoken.
func addSessions(t testing.TB, s *sqlstore.Store, key string, people ...string) {
	t.Helper()
	l, err := s.Open(t.Context(), key, time.Now().UnixMicro())
	if err != nil {
		t.Fatal(err)
	}
	for i, person := range people {
		var entries []sessions.Entry
		for kind, data := range map[sessions.Kind]any{sessions.KindTurnStarted: sessions.TurnStarted{Route: []byte("{}")}, sessions.KindTurnDone: sessions.TurnDone{State: sessions.TurnCompleted}} {
			e, err := sessions.NewEntry(fmt.Sprint("t", i), kind, data)
			if err != nil {
				t.Fatal(err)
			}
			e.Person = person
			entries = append(entries, e)
		}
		slices.SortFunc(entries, func(a, b sessions.Entry) int { return strings.Compare(string(b.Kind), string(a.Kind)) }) // so that turn_started comes before turn_done
		if err := l.Append(t.Context(), l.Next(), entries...); err != nil {
			t.Fatal(err)
		}
	}
}

// newArchiver makes the Archiver of a process that archives into a folder.
func newArchiver(t testing.TB, s *sqlstore.Store, place archive.Place, point func(string)) *archive.Archiver {
	t.Helper()
	if err := s.Archive().Want(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	return archive.New(archive.Config{Table: s.Archive(), Place: place, Spool: t.TempDir(), RecordLifetime: 7 * oneDay, Point: point, Log: slog.New(slog.DiscardHandler)})
}

func archiveAt(t testing.TB, s *sqlstore.Store, place archive.Place, now time.Time) {
	t.Helper()
	if err := newArchiver(t, s, place, nil).ArchiveNow(t.Context(), now); err != nil {
		t.Fatal(err)
	}
}

// verify returns what is found in a place.
func verify(t testing.TB, s *sqlstore.Store, place archive.Place, from string) archive.Report {
	t.Helper()
	r, err := archive.Verify(t.Context(), place, s.Archive().Files, from)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// wantWhole fails the test unless the archive is complete and has that many files and records.
func wantWhole(t testing.TB, s *sqlstore.Store, place archive.Place, files int, records int64) {
	t.Helper()
	if r := verify(t, s, place, ""); r.Break != nil || !r.HasDatabase || r.Files != files || r.Records != records {
		t.Errorf("the archive is %+v, break %+v, want %d files with %d records", r, r.Break, files, records)
	}
}

// readLines returns the lines of a file.
func readLines(t testing.TB, path string) []string {
	t.Helper()
	packed, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	from, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	return strings.SplitAfter(strings.TrimSuffix(string(all), "\n"), "\n")
}

// writeLines writes lines as a file.
func writeLines(t testing.TB, path string, lines []string) {
	t.Helper()
	var packed bytes.Buffer
	to := gzip.NewWriter(&packed)
	for _, line := range lines {
		if _, err := io.WriteString(to, strings.TrimSuffix(line, "\n")+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(to.Close(), os.WriteFile(path, packed.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func filePath(dir string, day int) string {
	return filepath.Join(dir, "audit-"+monday().AddDate(0, 0, day).Format(time.DateOnly)+".jsonl.gz")
}

// recordIDs returns the ids of the records in all files, in order.
func recordIDs(t testing.TB, dir string) (all []int64) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "audit-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		for _, line := range readLines(t, file) {
			var r struct{ ID int64 }
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatal(err)
			}
			if r.ID > 0 {
				all = append(all, r.ID)
			}
		}
	}
	return all
}

// Each day becomes a file, without names and without anybody's words. A late record goes into the next file,
// and a day without records gets none.
func TestDaysAreArchived(t *testing.T) {
	sqlstoretest.Each(t, func(t *testing.T, _ string, s, other *sqlstore.Store) {
		dir := t.TempDir()
		place := folder.New(dir)
		addSessions(t, s, private, anna)
		addSessions(t, s, group, anna, berta)
		forget := sessions.AuditRecord{At: toolCallRecord(0, "", "").At, Kind: sessions.AuditForget, By: "token:ci", Result: "erased", Detail: anna}
		refusal := sessions.AuditRecord{At: forget.At, Kind: sessions.AuditRefusal, By: anna, Result: "not_paired", Address: private[5:], Messages: []string{secret}}
		turn := sessions.AuditRecord{At: forget.At, Kind: sessions.AuditTurn, By: anna, Session: private, Turn: "t1", Result: "failed", Detail: "model_overloaded", Used: &sessions.AuditUse{Model: "gpt", Calls: 3}}
		addRecords(t, s, toolCallRecord(0, private, anna), toolCallRecord(0, group, berta), forget, toolCallRecord(1, private, anna), toolCallRecord(3, private, anna), toolCallRecord(4, private, anna))
		if err := s.AuditNotes(t.Context(), []sessions.AuditRecord{refusal, turn}); err != nil {
			t.Fatal(err)
		}
		archiveAt(t, s, place, timeAfterDays(2))
		wantWhole(t, s, place, 2, 5)
		late := toolCallRecord(1, private, anna)
		late.Tool = "odd name with words"
		late.Detail = sessions.DetailRateLimited
		addRecords(t, s, late)
		archiveAt(t, other, place, timeAfterDays(4))
		wantWhole(t, other, place, 4, 7) // the late record has a file of its own
		if r := verify(t, s, place, monday().AddDate(0, 0, 1).Format(time.DateOnly)); r.Break != nil || r.Files != 3 || r.Records != 3 {
			t.Errorf("from the second day on it is %+v, %+v", r, r.Break)
		}
		var first, all []map[string]any
		for day := range 4 {
			for _, line := range readLines(t, filePath(dir, day)) {
				if strings.Contains(line, secret) || strings.Contains(line, "telegram") || strings.Contains(line, "U7") || strings.Contains(line, "token:ci") || strings.Contains(line, "odd name") {
					t.Errorf("a line has %s", line)
				}
				var l map[string]any
				if err := json.Unmarshal([]byte(line), &l); err != nil {
					t.Fatal(err)
				}
				if all = append(all, l); day == 0 {
					first = append(first, l)
				}
			}
		}
		find := func(lines []map[string]any, kind string) (found []map[string]any) {
			for _, l := range lines {
				if l["kind"] == kind {
					found = append(found, l)
				}
			}
			return found
		}
		calls := find(all, "tool")
		if len(calls) != 5 || calls[0]["by"] == "" || calls[0]["by"] != calls[2]["by"] || calls[0]["session"] != calls[2]["session"] || calls[0]["turn"] != calls[2]["turn"] || calls[0]["by"] == calls[1]["by"] || calls[0]["detail"] != calls[1]["by"] {
			t.Errorf("the calls are %v", calls)
		}
		if i := slices.IndexFunc(calls, func(c map[string]any) bool { return c["tool"] == nil }); i < 0 || calls[i]["detail"] != sessions.DetailRateLimited {
			t.Errorf("the call over a rate is number %d of %v", i, calls)
		}
		if c := calls[0]; c["tool"] != "exec_shell" || c["verdict"] != "allow" || c["result"] != "ok" || c["bytes"] != 12.0 || c["elapsed_ms"] != 34.0 || c["exit_code"] != 0.0 || c["agent"] != "main" {
			t.Errorf("a call is %v", c)
		}
		if turns := find(first, "turn"); len(turns) != 1 || turns[0]["detail"] != "model_overloaded" || turns[0]["used"].(map[string]any)["calls"] != 3.0 || turns[0]["by"] != calls[0]["by"] {
			t.Errorf("the turns are %v", turns)
		}
		if forgotten := find(first, "forget"); len(forgotten) != 1 || forgotten[0]["detail"] != nil {
			t.Errorf("the erasures are %v", forgotten)
		}
		if state, err := s.Archive().State(t.Context()); err != nil || state.Newest.Day != "2030-01-10" || state.Newest.Number != 4 || !state.Failing.IsZero() {
			t.Errorf("the state is %+v, %v", state, err)
		}
	})
}

// Records that are not archived stay in the database, without arguments once they are old. Archived records are
// deleted.
func TestRecordsStayUntilTheyAreArchived(t *testing.T) {
	sqlstoretest.Each(t, func(t *testing.T, _ string, s, _ *sqlstore.Store) {
		place := folder.New(t.TempDir())
		addSessions(t, s, private, anna)
		addRecords(t, s, toolCallRecord(0, private, anna), toolCallRecord(1, private, anna))
		refusal := sessions.AuditRecord{At: monday(), Kind: sessions.AuditRefusal, By: anna, Result: "not_paired", Address: "telegram:42", Messages: []string{"m"}}
		if err := s.AuditNotes(t.Context(), []sessions.AuditRecord{refusal}); err != nil {
			t.Fatal(err)
		}
		archiveAt(t, s, place, timeAfterDays(1))
		addRecords(t, s, toolCallRecord(0, private, anna)) // a late record, which is not archived before it is old
		for range 2 {
			if n, err := s.DropAudit(t.Context(), monday().Add(2*oneDay)); err != nil {
				t.Fatal(n, err)
			}
		}
		left, err := s.AuditRecords(t.Context(), sessions.AuditQuery{Limit: 10})
		if err != nil || len(left) != 2 || left[0].Arguments != nil || left[1].Arguments != nil || left[0].By != anna {
			t.Errorf("left is %+v, %v", left, err)
		}
		if _, err := s.EraseBefore(t.Context(), monday().Add(2*oneDay)); err != nil {
			t.Fatal(err)
		}
		archiveAt(t, s, place, timeAfterDays(20)) // the late record is about to be deleted
		wantWhole(t, s, place, 2, 3)
		if n, err := s.DropAudit(t.Context(), monday().Add(2*oneDay)); err != nil || n != 2 {
			t.Errorf("dropped %d, %v", n, err)
		}
		// Without an archive, no record waits to be archived.
		addRecords(t, s, toolCallRecord(0, private, anna))
		if err := s.Archive().Want(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		if n, err := s.DropAudit(t.Context(), monday().Add(2*oneDay)); err != nil || n != 1 {
			t.Errorf("dropped %d, %v", n, err)
		}
	})
}

// Wherever the process is killed, another one continues: each record is in one file, and no file changes once
// it exists.
func TestTheArchiveSurvivesKills(t *testing.T) {
	const records, points = 690, 7
	sqlstoretest.Each(t, func(t *testing.T, _ string, s, other *sqlstore.Store) {
		dir := t.TempDir()
		place := folder.New(dir)
		addSessions(t, s, private, anna)
		for n := range records {
			addRecords(t, s, toolCallRecord(n%3, private, anna))
		}
		passed, killed := map[string]int{}, 0
		stored := map[string]string{}
		for stop := 1; ; stop = stop%points + 1 {
			left := stop
			done := make(chan bool, 1)
			go func() { // a killed process runs no deferred calls, but Goexit does; none of these writes anything
				finished := false
				defer func() { done <- finished }()
				point := func(name string) {
					passed[name]++
					if left--; left == 0 {
						runtime.Goexit()
					}
				}
				if err := newArchiver(t, s, place, point).ArchiveNow(t.Context(), timeAfterDays(3)); err != nil {
					t.Error(err)
				}
				finished = true
			}()
			finished := <-done
			for name, was := range stored {
				if now, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(now) != was {
					t.Errorf("the file %s has changed, %v", name, err)
				}
			}
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				raw, err := os.ReadFile(filepath.Join(dir, e.Name()))
				if err != nil {
					t.Fatal(err)
				}
				stored[e.Name()] = string(raw)
			}
			if finished {
				break
			}
			if killed++; killed > 100 {
				t.Fatal("it never ends")
			}
			s, other = other, s
		}
		wantWhole(t, s, place, 3, records)
		all := recordIDs(t, dir)
		if slices.Sort(all); len(all) != records || len(slices.Compact(all)) != records {
			t.Errorf("the files have %d records", len(all))
		}
		if names := slices.Sorted(maps.Keys(passed)); killed < 3 || !slices.Equal(names, []string{"archive:begun", "archive:page", "archive:put", "archive:recorded", "archive:sealed"}) {
			t.Errorf("it died %d times, at %v", killed, passed)
		}
	})
}

// A process that was interrupted can't archive anymore once another process archives.
func TestOneProcessArchives(t *testing.T) {
	sqlstoretest.Each(t, func(t *testing.T, _ string, s, other *sqlstore.Store) {
		place := folder.New(t.TempDir())
		addRecords(t, s, toolCallRecord(0, private, anna), toolCallRecord(1, private, anna))
		earlier := newArchiver(t, s, place, nil)
		fence, err := earlier.Fence(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		archiveAt(t, other, place, timeAfterDays(1))
		if err := earlier.ArchiveUnder(t.Context(), fence, timeAfterDays(2)); !errors.Is(err, archive.ErrFenced) {
			t.Errorf("the earlier process gets %v", err)
		}
		wantWhole(t, s, place, 1, 1)
	})
}

// After an erasure, nobody can tell which lines are about the person, and the archive is as complete as before.
func TestErasingDropsKeys(t *testing.T) {
	sqlstoretest.Each(t, func(t *testing.T, at string, s, _ *sqlstore.Store) {
		dir := t.TempDir()
		place := folder.New(dir)
		addSessions(t, s, private, anna)
		addSessions(t, s, group, anna, berta)
		addRecords(t, s, toolCallRecord(0, private, anna), toolCallRecord(0, group, anna), toolCallRecord(0, group, berta), toolCallRecord(1, private, anna))
		archiveAt(t, s, place, timeAfterDays(1))
		if got := keySubjects(t, at); !slices.Equal(got, []string{"person " + berta, "person " + anna, "session " + group, "session " + private}) {
			t.Fatalf("there are keys of %q", got)
		}
		if _, err := s.ErasePerson(t.Context(), anna); err != nil {
			t.Fatal(err)
		}
		wantWhole(t, s, place, 1, 3)
		// Archiving the second day makes no new key: that day's record names no person, and its session is erased.
		archiveAt(t, s, place, timeAfterDays(2))
		wantWhole(t, s, place, 2, 4)
		if got := keySubjects(t, at); !slices.Equal(got, []string{"person " + berta, "session " + group}) {
			t.Errorf("there are keys of %q", got)
		}
		if _, err := s.EraseSession(t.Context(), group); err != nil {
			t.Fatal(err)
		}
		if got := keySubjects(t, at); !slices.Equal(got, []string{"person " + berta}) {
			t.Errorf("there are keys of %q", got)
		}
		wantWhole(t, s, place, 2, 4)
	})
}

// After a move to another database, the chain continues, even in the middle of a day, with the same pseudonyms.
func TestTheArchiveContinuesInAnotherDatabase(t *testing.T) {
	s, at := openStore(t), sqldbtest.New(t)
	dir := t.TempDir()
	place := folder.New(dir)
	addSessions(t, s, private, anna)
	addRecords(t, s, toolCallRecord(0, private, anna), toolCallRecord(1, private, anna))
	archiveAt(t, s, place, timeAfterDays(1))
	stopped := make(chan struct{})
	go func() { // the process dies while the lines of a file are in the database
		defer close(stopped)
		_ = newArchiver(t, s, place, func(name string) {
			if name == "archive:sealed" {
				runtime.Goexit()
			}
		}).ArchiveNow(t.Context(), timeAfterDays(2)) // this call does not return
	}()
	<-stopped
	to, err := sqlstore.Open(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	if _, err := sqlstore.Copy(t.Context(), s, to, func(*sqldb.Tx) error { return nil }); err != nil {
		t.Fatal(err)
	}
	addRecords(t, to, toolCallRecord(2, private, anna))
	archiveAt(t, to, place, timeAfterDays(3))
	wantWhole(t, to, place, 3, 3)
	by := map[any]bool{}
	for day := range 3 {
		var l map[string]any
		if err := json.Unmarshal([]byte(readLines(t, filePath(dir, day))[1]), &l); err != nil {
			t.Fatal(err)
		}
		by[l["by"]] = true
	}
	if len(by) != 1 {
		t.Errorf("one person has the pseudonyms %v", by)
	}
}

// A person or session that is erased during archiving has no key afterward either.
func TestErasingWhileArchiving(t *testing.T) {
	sqlstoretest.Each(t, func(t *testing.T, at string, s, other *sqlstore.Store) {
		const people, each = 12, 40
		place := folder.New(t.TempDir())
		person := func(n int) string { return fmt.Sprintf("telegram:%d", 100+n) }
		for n := range people {
			addSessions(t, s, "main:"+person(n), person(n))
		}
		for n := range people * each {
			r := toolCallRecord(n%2, "main:"+person(n%people), person(n%people))
			r.Detail = person((n + 1) % people)
			addRecords(t, s, r)
		}
		pages := make(chan struct{}, people*each)
		var erasing sync.WaitGroup
		erasing.Go(func() {
			for n := range people / 2 {
				<-pages
				if _, err := other.ErasePerson(t.Context(), person(2*n)); err != nil {
					t.Error(err)
				}
			}
		})
		a := newArchiver(t, s, place, func(string) { pages <- struct{}{} })
		if err := a.ArchiveNow(t.Context(), timeAfterDays(2)); err != nil {
			t.Error(err)
		}
		close(pages)
		erasing.Wait()
		wantWhole(t, s, place, 2, people*each)
		var want []string
		for n := range people / 2 {
			want = append(want, "person "+person(2*n+1), "session main:"+person(2*n+1))
		}
		slices.Sort(want)
		if got := keySubjects(t, at); !slices.Equal(got, want) {
			t.Errorf("there are keys of %q, want %q", got, want)
		}
	})
}

// Verify finds every change to the files, and reports where it is.
func TestVerifyFindsWhatWasChanged(t *testing.T) {
	read := func(t *testing.T, dir string, day int, change func(lines []string) []string) {
		writeLines(t, filePath(dir, day), change(readLines(t, filePath(dir, day))))
	}
	remove := func(t *testing.T, path string) {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		change func(t *testing.T, dir string)
		day    int
		line   int64
		says   string
	}{
		"a changed line": {func(t *testing.T, dir string) {
			read(t, dir, 1, func(l []string) []string { l[2] = strings.Replace(l[2], "allow", "denied", 1); return l })
		}, 1, 4, "was changed"},
		"a changed first line": {func(t *testing.T, dir string) {
			read(t, dir, 1, func(l []string) []string { l[0] = strings.Replace(l[0], `"format":1`, `"format":2`, 1); return l })
		}, 1, 2, "was changed"},
		"a removed line": {func(t *testing.T, dir string) {
			read(t, dir, 1, func(l []string) []string { return slices.Delete(l, 2, 3) })
		}, 1, 3, "missing"},
		"an added line": {func(t *testing.T, dir string) {
			read(t, dir, 1, func(l []string) []string { return slices.Insert(l, 2, l[1]) })
		}, 1, 3, "was added"},
		"a line after the end": {func(t *testing.T, dir string) {
			read(t, dir, 1, func(l []string) []string { return append(l, l[1]) })
		}, 1, 6, "after the end"},
		"a file that is cut off": {func(t *testing.T, dir string) {
			read(t, dir, 1, func(l []string) []string { return l[:3] })
		}, 1, 3, "cut off"},
		"bytes that are cut off": {func(t *testing.T, dir string) {
			raw, err := os.ReadFile(filePath(dir, 1))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filePath(dir, 1), raw[:len(raw)-9], 0o600); err != nil {
				t.Fatal(err)
			}
		}, 1, 5, "cut off"},
		"a file of another day": {func(t *testing.T, dir string) {
			read(t, dir, 1, func([]string) []string { return readLines(t, filePath(dir, 0)) })
		}, 1, 1, "isn't the file"},
		"no file of the archive": {func(t *testing.T, dir string) {
			if err := os.WriteFile(filePath(dir, 1), []byte("hello"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, 1, 0, "isn't a file of the archive"},
		"a missing day":  {func(t *testing.T, dir string) { remove(t, filePath(dir, 1)) }, 1, 0, "is missing"},
		"a missing end":  {func(t *testing.T, dir string) { remove(t, filePath(dir, 2)) }, 2, 0, "is missing"},
		"an unknown day": {func(t *testing.T, dir string) { writeLines(t, filePath(dir, 5), []string{""}) }, 5, 1, "isn't a line"},
		"a rewritten end": {func(t *testing.T, dir string) {
			read(t, dir, 2, func(l []string) []string {
				l[4] = strings.Replace(l[4], `"lines":3`, `"lines": 3`, 1)
				return l
			})
		}, 2, 0, "isn't what was archived"},
	} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t)
			dir := t.TempDir()
			place := folder.New(dir)
			for n := range 9 {
				addRecords(t, s, toolCallRecord(n%3, private, anna))
			}
			archiveAt(t, s, place, timeAfterDays(3))
			wantWhole(t, s, place, 3, 9)
			c.change(t, dir)
			want := monday().AddDate(0, 0, c.day).Format(time.DateOnly)
			if b := verify(t, s, place, "").Break; b == nil || b.Day != want || b.Line != c.line || !strings.Contains(b.Problem, c.says) {
				t.Errorf("it finds %+v, want %s, line %d, %q", b, want, c.line, c.says)
			}
		})
	}
}

// Without the database, Verify finds a missing file by the links between files.
func TestVerifyWithoutTheDatabase(t *testing.T) {
	s, empty := openStore(t), openStore(t)
	dir := t.TempDir()
	place := folder.New(dir)
	addRecords(t, s, toolCallRecord(0, private, anna), toolCallRecord(1, private, anna), toolCallRecord(2, private, anna))
	archiveAt(t, s, place, timeAfterDays(3))
	if r := verify(t, empty, place, ""); r.Break != nil || r.HasDatabase || r.Files != 3 || r.Records != 3 {
		t.Errorf("it finds %+v, %+v", r, r.Break)
	}
	if err := os.Remove(filePath(dir, 1)); err != nil {
		t.Fatal(err)
	}
	if b := verify(t, empty, place, "").Break; b == nil || b.Day != "2030-01-09" || !strings.Contains(b.Problem, "2030-01-08") {
		t.Errorf("it finds %+v", b)
	}
	// Earlier files may have been removed on purpose.
	if r := verify(t, s, place, "2030-01-09"); r.Break != nil || r.Files != 1 {
		t.Errorf("it finds %+v, %+v", r, r.Break)
	}
}

// An existing file with different lines is never replaced.
func TestADifferentFileIsNotReplaced(t *testing.T) {
	s, before := openStore(t), openStore(t)
	dir := t.TempDir()
	place := folder.New(dir)
	addRecords(t, before, toolCallRecord(0, private, anna))
	archiveAt(t, before, place, timeAfterDays(1))
	was, err := os.ReadFile(filePath(dir, 0))
	if err != nil {
		t.Fatal(err)
	}
	addRecords(t, s, toolCallRecord(0, private, anna))
	err = newArchiver(t, s, place, nil).ArchiveNow(t.Context(), timeAfterDays(1))
	if conflict, ok := errors.AsType[*archive.ConflictError](err); !ok || !strings.Contains(conflict.Error(), "move that file away") {
		t.Errorf("it ends with %v", err)
	}
	if now, err := os.ReadFile(filePath(dir, 0)); err != nil || !bytes.Equal(was, now) {
		t.Errorf("the file has changed: %v", err)
	}
}

// failingFolder is a folder that fails while its error is set, in the middle of a file, as if the disk were
// full.
type failingFolder struct {
	*folder.Folder
	mu  sync.Mutex
	err error
}

func (f *failingFolder) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *failingFolder) Put(ctx context.Context, name string, content io.ReadSeeker, size int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return f.err
	}
	return f.Folder.Put(ctx, name, content, size)
}

// After a failure, Run tries again, and records since when archiving has failed. It archives each day in the
// following night.
func TestRunRetriesAndArchivesEachNight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openStore(t)
		place := &failingFolder{Folder: folder.New(t.TempDir()), err: errors.New("the disk is full")}
		record := toolCallRecord(0, private, anna)
		record.At = time.Now().Add(-oneDay)
		addRecords(t, s, record)
		a := newArchiver(t, s, place, nil)
		var ready atomic.Bool
		a.Ready = func(context.Context) (bool, error) { return ready.Load(), nil }
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			if err := a.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(time.Hour) // an older release is also running
		synctest.Wait()
		if state, err := s.Archive().State(t.Context()); err != nil || !state.Failing.IsZero() {
			t.Errorf("before it may archive the state is %+v, %v", state, err)
		}
		ready.Store(true)
		time.Sleep(time.Hour)
		synctest.Wait()
		state, err := s.Archive().State(t.Context())
		if err != nil || state.Problem == "" || !strings.Contains(state.Problem, "the disk is full") || time.Since(state.Failing) < 50*time.Minute || a.Failing() < 50*time.Minute {
			t.Errorf("the state is %+v, %v, failing for %s", state, err, a.Failing())
		}
		place.set(nil)
		time.Sleep(11 * time.Minute)
		synctest.Wait()
		wantWhole(t, s, place, 1, 1)
		if state, err := s.Archive().State(t.Context()); err != nil || !state.Failing.IsZero() || state.Problem != "" || a.Failing() != 0 {
			t.Errorf("the state is %+v, %v", state, err)
		}
		record.At = time.Now()
		addRecords(t, s, record)
		time.Sleep(time.Until(archive.NextDue(time.Now())) + time.Second)
		synctest.Wait()
		wantWhole(t, s, place, 2, 2)
		if age, known := a.Age(); !known || age > time.Hour {
			t.Errorf("the newest day ended %s ago, %v", age, known)
		}
		cancel()
		running.Wait()
	})
}
