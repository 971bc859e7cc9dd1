package sqlbook_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/sqlbook"
	"parley/sessions/sqldb"
	"parley/sessions/sqldb/sqldbtest"
)

// fillBook records for each of many sessions a chat, a few answers, an ask, and a rating.
func fillBook(tb testing.TB, place string, sessions int) {
	tb.Helper()
	db, err := sqldb.OpenAt(tb.Context(), place, sqlbook.Schema())
	if err != nil {
		tb.Fatal(err)
	}
	defer db.Close()
	now := time.Now().UnixMicro()
	for some := range slices.Chunk(slices.Collect(func(yield func(int) bool) {
		for n := range sessions {
			if !yield(n) {
				return
			}
		}
	}), 500) {
		err := db.Write(tb.Context(), func(tx *sqldb.Tx) error {
			for _, n := range some {
				if err := fillSession(tx, n, now); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
}

const answersPerSession = 3

func fillSession(tx *sqldb.Tx, n int, now int64) error {
	chat, key := fmt.Sprint(n), sessionKey(n)
	if _, err := tx.Exec(`INSERT INTO chats (channel, chat, thread, session, shared, seen, person, name) VALUES ('telegram', ?, '', ?, 0, ?, ?, 'x')`,
		chat, key, now, "telegram:"+chat); err != nil {
		return err
	}
	for m := range answersPerSession {
		id := fmt.Sprintf("s%d-%d", n, m)
		if _, err := tx.Exec(`INSERT INTO sends (id, channel, chat, thread, session, writer, begun) VALUES (?, 'telegram', ?, '', ?, '', ?)`, id, chat, key, now); err != nil {
			return err
		}
		if _, err := tx.Exec(`INSERT INTO parts (send, part, state, body, plain, code, edits, under, file, platform_id, interrupted, changed)
			VALUES (?, 0, 'sent', '', '', '', '', '', 0, ?, 0, ?)`, id, id, now); err != nil {
			return err
		}
	}
	if _, err := tx.Exec(`INSERT INTO asks (id, session, person, hash, body, made, expires, state, cause, answerer, answer, ended, told, granted)
		VALUES (?, ?, ?, '', '{}', ?, ?, 'answered', '', '', '', ?, 1, 0)`, "a"+chat, key, "telegram:"+chat, now, now, now); err != nil {
		return err
	}
	_, err := tx.Exec(`INSERT INTO ratings (person, channel, chat, message, thread, session, turn, good, rated) VALUES (?, 'telegram', ?, '1', '', ?, 't', 1, ?)`,
		"telegram:"+chat, chat, key, now)
	return err
}

func sessionKey(n int) string { return fmt.Sprint("main:telegram:", n) }

func sessionKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = sessionKey(i)
	}
	return keys
}

// Others can write while many sessions are erased, because an erasure consists of many transactions. Each ends
// after a number of sessions or a time.
func TestOthersWriteBetweenTheStepsOfAnErasure(t *testing.T) {
	for name, place := range map[string]func(testing.TB) string{"sqlite": newPlace, "postgres": func(t testing.TB) string { return sqldbtest.New(t) }} {
		for bound, c := range map[string]struct {
			each time.Duration // how long a session takes
			most int           // how many sessions a step erases at most
		}{"by number": {0, sqlbook.StepUnits}, "by time": {sqlbook.StepTime/2 + 1, 2}} {
			t.Run(name+" "+bound, func(t *testing.T) {
				const sessions = 350
				at := place(t)
				fillBook(t, at, sessions)
				b := openBook(t, at)
				t.Cleanup(func() { b.Close() })
				now := time.Now()
				b.SetClock(func() time.Time { now = now.Add(c.each); return now })
				var left []int
				b.AfterStep(func() {
					begin(t, b, fmt.Sprint("meanwhile", len(left)), group, true)
					chats, err := b.Chats(t.Context())
					if err != nil {
						t.Error(err)
					}
					left = append(left, len(chats))
				})
				erase(t, b, sqlbook.Erasure{Sessions: sessionKeys(sessions - 1)},
					sqlbook.Erased{Sends: answersPerSession * (sessions - 1), Chats: sessions - 1, Asks: sessions - 1, Ratings: sessions - 1})
				before := sessions
				for _, n := range left {
					if before-n > c.most {
						t.Errorf("a step has erased %d sessions, want at most %d", before-n, c.most)
					}
					before = n
				}
				if before != 1 || len(left) < (sessions-1)/c.most {
					t.Errorf("%d sessions are left after %d steps", before, len(left))
				}
				for n := range left {
					if _, err := b.Lookup(t.Context(), fmt.Sprint("meanwhile", n)); err != nil {
						t.Errorf("what was sent after step %d: %v", n, err)
					}
				}
			})
		}
	}
}

// One session, or one person, may have more rows than one transaction may erase.
func TestALongSessionIsErasedInSteps(t *testing.T) {
	b := openBook(t, newPlace(t))
	t.Cleanup(func() { b.Close() })
	const sends = 4*sqlbook.UnitRows + 1
	for n := range sends {
		begin(t, b, fmt.Sprint("w", n), private, true)
	}
	for n := range sends {
		if err := b.OpenAsk(t.Context(), bus.Ask{ID: fmt.Sprint("a", n), Session: "main:x", Person: "telegram:42", Expires: time.Now().Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	b.SetClock(func() time.Time { now = now.Add(time.Hour); return now }) // so that each unit is a step of its own
	steps := 0
	b.AfterStep(func() { steps++ })
	erase(t, b, sqlbook.Erasure{Sessions: []string{"main:x"}, Places: []bus.Address{private}}, sqlbook.Erased{Sends: sends, Asks: sends})
	if steps < 8 {
		t.Errorf("%d rows were erased in %d steps", 2*sends, steps)
	}
}

// The record of a session's chats is erased last, because a retention that continues after an interruption
// finds the rest by it.
func TestTheChatOfASessionIsErasedLast(t *testing.T) {
	at := newPlace(t)
	fillBook(t, at, 1)
	b := openBook(t, at)
	t.Cleanup(func() { b.Close() })
	for n := range 2 * sqlbook.UnitRows {
		if _, _, err := b.Begin(t.Context(), channels.Send{ID: fmt.Sprint("more", n), To: private, Writer: sessionKey(0)}); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	b.SetClock(func() time.Time { now = now.Add(time.Hour); return now })
	ctx, cut := context.WithCancel(t.Context())
	b.AfterStep(cut)
	if _, err := b.Erase(ctx, sqlbook.Erasure{Sessions: []string{sessionKey(0)}}); err == nil {
		t.Fatal("it was not cut off")
	}
	b.AfterStep(nil)
	if chats, err := b.Chats(t.Context()); err != nil || len(chats) != 1 {
		t.Fatalf("the chats are %v, %v", chats, err)
	}
	got, err := b.Erase(t.Context(), sqlbook.Erasure{Sessions: []string{sessionKey(0)}})
	if err != nil || got.Chats != 1 || got.Asks != 1 || got.Ratings != 1 {
		t.Errorf("the rest is %+v, %v", got, err)
	}
}

// A message that is sent to a person's chat during an erasure is not part of it. Its record stays, so that it
// is sent only once.
func TestSendsDuringAnErasureStay(t *testing.T) {
	path := newPlace(t)
	b := openBook(t, path)
	t.Cleanup(func() { b.Close() })
	const sends = 2*sqlbook.UnitRows + 1
	for n := range sends {
		begin(t, b, fmt.Sprintf("m%03d", n), private, true)
	}
	raw, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { raw.Close() })
	const hour = 3_600_000_000 // in microseconds; the clock of the process that sent them is ahead
	if _, err := raw.Exec(`UPDATE sends SET begun = begun + ?`, hour); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	b.SetClock(func() time.Time { now = now.Add(time.Hour); return now }) // so that each unit is a step of its own
	steps := 0
	b.AfterStep(func() {
		steps++
		begin(t, b, fmt.Sprintf("n%d", steps), private, true) // after all others
	})
	erase(t, b, sqlbook.Erasure{At: []bus.Address{private}}, sqlbook.Erased{Sends: sends})
	if steps < 3 {
		t.Errorf("it took %d steps", steps)
	}
	for n := range steps {
		if _, err := b.Lookup(t.Context(), fmt.Sprintf("n%d", n+1)); err != nil {
			t.Errorf("what was sent after step %d: %v", n+1, err)
		}
	}
}

// fullErasure returns an erasure that uses all statements.
func fullErasure() sqlbook.Erasure {
	return sqlbook.Erasure{
		Sends: []string{"x"}, Asked: time.Now().Add(time.Hour), At: []bus.Address{private}, Sessions: []string{sessionKey(0), "main:x"}, Places: []bus.Address{group},
		Person: "telegram:1", Origin: "ci", Before: time.Now().Add(time.Hour),
	}
}

// smallTable is a table that stays small, because the codes in it are valid for only ten minutes.
const smallTable = "link_codes"

// No statement of an erasure reads a whole table, except small ones.
func TestNoStatementOfAnErasureReadsAWholeTable(t *testing.T) {
	path := newPlace(t)
	fillBook(t, path, 3)
	var statements sqldbtest.Statements
	db, err := sqldb.OpenAt(statements.Watch(t.Context()), path, sqlbook.Schema())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	b, err := sqlbook.Use(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	begin(t, b, "stray", group, false)
	for _, l := range []channels.LinkRequest{{Person: "telegram:1", Cause: "c"}} {
		code, err := b.OfferLink(t.Context(), l)
		if err == nil {
			_, err = b.Link(t.Context(), channels.Linking{Person: "slack:1", Code: code, Cause: "d"})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	statements.Forget()
	if _, err := b.Erase(t.Context(), fullErasure()); err != nil {
		t.Fatal(err)
	}
	// The purge reads SQLite's catalog, which is small.
	ofErasure := slices.DeleteFunc(statements.List(), func(s string) bool { return strings.Contains(s, "sqlite_schema") })
	if len(ofErasure) < 25 {
		t.Fatalf("only %d statements were seen", len(ofErasure))
	}
	mayScan := func(table, _ string) bool { return strings.Contains(smallTable, table) }
	t.Run("sqlite", func(t *testing.T) { sqldbtest.WantNoScan(t, db, ofErasure, mayScan) })
	t.Run("postgres", func(t *testing.T) {
		pg, err := sqldb.OpenAt(t.Context(), sqldbtest.New(t), sqlbook.Schema())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { pg.Close() })
		sqldbtest.WantNoScan(t, pg, ofErasure, mayScan)
	})
}

// BenchmarkErase erases half of the sessions that a book knows.
func BenchmarkErase(b *testing.B) {
	for _, sessions := range []int{2500, 5000, 10_000, 20_000} {
		b.Run(fmt.Sprint(sessions), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				at := newPlace(b)
				fillBook(b, at, 2*sessions)
				book, err := sqlbook.Open(b.Context(), at)
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				if done, err := book.Erase(b.Context(), sqlbook.Erasure{Sessions: sessionKeys(sessions)}); err != nil || done.Chats != int64(sessions) {
					b.Fatal(done, err)
				}
				b.StopTimer()
				if err := book.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*sessions), "µs/session")
		})
	}
}
