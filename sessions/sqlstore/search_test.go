package sqlstore

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/sessions"
	"parley/sessions/search"
	"parley/sessions/search/searchtest"
	"parley/sessions/sqldb"
	"parley/sessions/sqldb/sqldbtest"
)

// onEachDatabase runs a test on both kinds of database.
func onEachDatabase(t *testing.T, test func(t *testing.T, place string)) {
	t.Run("sqlite", func(t *testing.T) { test(t, filepath.Join(t.TempDir(), "store.db")) })
	t.Run("postgres", func(t *testing.T) { test(t, sqldbtest.New(t)) })
}

func openStore(t *testing.T, place string) *Store {
	t.Helper()
	s, err := Open(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// appendTexts appends a person's texts to a session.
func appendTexts(t *testing.T, s *Store, key string, texts ...string) {
	t.Helper()
	l, err := s.open(t.Context(), key, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		e, err := sessions.NewEntry("t", sessions.KindUser, sessions.User{Text: text})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Append(t.Context(), l.Next(), e); err != nil {
			t.Fatal(err)
		}
	}
}

func fillAll(t *testing.T, s *Store) (calls int) {
	t.Helper()
	for more := true; more; calls++ {
		var err error
		if more, err = s.Words().Fill(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return calls
}

func wantIndex(t *testing.T, when string, s *Store, want search.State) {
	t.Helper()
	if got, err := s.Words().State(t.Context()); err != nil || got != want {
		t.Errorf("%s the index has %+v, %v, want %+v", when, got, err, want)
	}
}

func wantHits(t *testing.T, when string, s *Store, words string, want int, keys ...string) {
	t.Helper()
	hits, err := s.Words().Search(t.Context(), search.Query{Words: words, Sessions: keys, Limit: search.MaxHits})
	if err != nil || len(hits) != want {
		t.Errorf("%s there are %d hits for %q, %v, want %d", when, len(hits), words, err, want)
	}
}

const indexedKey = "main:test:1"

// Rows that a fault has removed from the index or added to it are counted, and the count is zero after a
// rebuild.
func TestMissingIndexRowsAreCounted(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, place string) {
		s := openStore(t, place)
		appendTexts(t, s, indexedKey, "one fig", "two figs", "three figs", "...")
		fillAll(t, s)
		wantIndex(t, "at first", s, search.State{Indexed: 3})
		faults := []string{ // the rows 2 and 9 of this session, and row 1 of one that does not exist
			"DELETE FROM entry_words WHERE rowid = (1 << 28) + 2",
			"INSERT INTO entry_words (rowid, words) VALUES ((1 << 28) + 9, 'x1 aaaaaaaa'), ((77 << 28) + 1, 'x77 aaaaaaaa')",
		}
		if s.db.IsPostgres() {
			faults = []string{
				"DELETE FROM entry_words WHERE n = 2",
				"INSERT INTO entry_words (session, n, words) SELECT id, 9, CAST('x1 aaaaaaaa' AS tsvector) FROM sessions UNION ALL SELECT 77, 1, 'x77 aaaaaaaa'",
			}
		}
		for _, fault := range faults {
			if _, err := s.db.Exec(t.Context(), fault); err != nil {
				t.Fatal(err)
			}
		}
		wantIndex(t, "with faults", s, search.State{Indexed: 4, Missing: 1, Stray: 2})
		if err := s.Words().Rebuild(t.Context()); err != nil {
			t.Fatal(err)
		}
		fillAll(t, s)
		wantIndex(t, "rebuilt", s, search.State{Indexed: 3})
		wantHits(t, "rebuilt", s, "figs", 3, indexedKey)
	})
}

// While a process serves, its filler repairs the index.
func TestAFillerRepairsTheIndex(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, place string) {
		s := openStore(t, place)
		appendTexts(t, s, indexedKey, "one fig", "two figs")
		fillAll(t, s)
		if _, err := s.db.Exec(t.Context(), "DELETE FROM entry_words"); err != nil {
			t.Fatal(err)
		}
		wantIndex(t, "at first", s, search.State{Missing: 2})
		filler := &search.Filler{Index: s.Words(), Log: slog.New(slog.DiscardHandler)}
		for more := true; more; {
			var err error
			if more, err = filler.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		wantIndex(t, "in the end", s, search.State{Indexed: 2})
	})
}

// An index that another release has split into words differently is rebuilt, no matter which process starts
// first.
func TestAnIndexWithOtherWordRulesIsRebuilt(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, place string) {
		s := openStore(t, place)
		appendTexts(t, s, indexedKey, "one fig", "two figs")
		fillAll(t, s)
		for _, change := range []string{"UPDATE word_cut SET cut = 0", "DELETE FROM entry_words"} {
			if _, err := s.db.Exec(t.Context(), change); err != nil {
				t.Fatal(err)
			}
		}
		fillAll(t, s)
		wantIndex(t, "while the same process has the store open", s, search.State{Missing: 2})
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = openStore(t, place)
		fillAll(t, s)
		wantIndex(t, "by the next", s, search.State{Indexed: 2})
	})
}

// migrationsBeforeIndex returns the migrations of the release before this index.
func migrationsBeforeIndex(all []string, step string) []string { return all[:slices.Index(all, step)] }

// Entries that the previous release has written are indexed in steps, the newest at once.
func TestAStoreOfThePreviousReleaseIsIndexedWhileServing(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, place string) {
		before := Schema()
		before.SQLite, before.Postgres = migrationsBeforeIndex(before.SQLite, search.SQLite), migrationsBeforeIndex(before.Postgres, search.Postgres)
		db, err := sqldb.OpenAt(t.Context(), place, before)
		if err != nil {
			t.Fatal(err)
		}
		const entries = 2500
		err = db.Write(t.Context(), func(tx *sqldb.Tx) error {
			var id int64
			now := "2026-01-02T03:04:05.000000Z"
			err := tx.Get("INSERT INTO sessions (key, fence, last, summary, covers, unfinished, created, updated) VALUES (?, 1, ?, 0, 0, '', ?, ?) RETURNING id", []any{indexedKey, entries, now, now}, &id)
			for n := 1; n <= entries && err == nil; n++ {
				_, err = tx.Exec("INSERT INTO entries (session, "+entryColumns+") VALUES (?, ?, 't', 'user', ?, '', '', '', ?)", id, n, now, fmt.Sprintf(`{"text":"old fig f%dx"}`, n))
			}
			return err
		})
		if err == nil {
			err = db.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		s := openStore(t, place)
		wantIndex(t, "at first", s, search.State{Waiting: entries})
		wantHits(t, "at first", s, "f2400x", 1, indexedKey)
		wantHits(t, "at first", s, "f3x", 0, indexedKey)
		appendTexts(t, s, indexedKey, "a new fig")
		wantHits(t, "at first", s, "new", 1, indexedKey)
		if calls := fillAll(t, s); calls < entries/100 {
			t.Errorf("it was filled by %d calls", calls)
		}
		wantIndex(t, "filled", s, search.State{Indexed: entries + 1})
		wantHits(t, "filled", s, "f3x", 1, indexedKey)
	})
}

// The previous release does not know the index. What it writes is found, and what it erases is not.
func TestThePreviousReleaseWritesBesideTheIndex(t *testing.T) {
	place := sqldbtest.New(t)
	s := openStore(t, place)
	appendTexts(t, s, indexedKey, "one fig", "two figs")
	fillAll(t, s)
	for _, change := range []string{ // as the previous release writes, empties and erases an entry
		`INSERT INTO entries (session, n, turn, kind, at, cause, person, call, data) SELECT id, 3, 't', 'user', updated, '', '', '', '{"text":"three figs"}' FROM sessions`,
		`UPDATE sessions SET last = 3`,
	} {
		if _, err := s.db.Exec(t.Context(), change); err != nil {
			t.Fatal(err)
		}
	}
	wantHits(t, "with its entry", s, "figs", 3, indexedKey)
	fillAll(t, s)
	wantIndex(t, "filled", s, search.State{Indexed: 3})
	for _, change := range []string{
		`INSERT INTO entry_vectors (session, n, vector) SELECT session, n, 'x' FROM entries`, `UPDATE sessions SET embedded = 3`, // as after vectors were made
		`UPDATE entries SET data = '{"text":"a pear"}' WHERE n = 1`, `DELETE FROM entries WHERE n = 2`,
	} {
		if _, err := s.db.Exec(t.Context(), change); err != nil {
			t.Fatal(err)
		}
	}
	var vectors, embedded int64
	if err := s.db.Read.QueryRowContext(t.Context(), "SELECT (SELECT sum(n) FROM entry_vectors), (SELECT embedded FROM sessions)").Scan(&vectors, &embedded); err != nil || vectors != 3 || embedded != 0 {
		t.Errorf("there are the vectors of %d, up to %d, %v; want that of entry 3 and none below", vectors, embedded, err)
	}
	wantHits(t, "without what it has erased", s, "figs", 1, indexedKey)
	wantHits(t, "with what it has left", s, "pears", 1, indexedKey)
	fillAll(t, s)
	wantIndex(t, "filled again", s, search.State{Indexed: 2})
	wantHits(t, "filled again", s, "figs", 1, indexedKey)
}

// When a store is copied, its index is rebuilt, but its vectors are kept, because they were paid for.
func TestACopiedStoreIsReindexedAndKeepsItsVectors(t *testing.T) {
	from := openStore(t, filepath.Join(t.TempDir(), "store.db"))
	appendTexts(t, from, indexedKey, "one fig", "two figs")
	fillAll(t, from)
	for _, change := range []string{`INSERT INTO entry_vectors (row, vector) VALUES ((1 << 28) + 1, x'00ff'), ((1 << 28) + 2, x'0102')`, `UPDATE sessions SET embedded = 2`, `UPDATE vector_identity SET model = 'm', prompt = 'p', dimensions = 2, taken = 7`} {
		if _, err := from.db.Exec(t.Context(), change); err != nil {
			t.Fatal(err)
		}
	}
	to := openStore(t, sqldbtest.New(t))
	if err := CheckEmpty(t.Context(), to); err != nil {
		t.Fatal(err)
	}
	rows, err := Copy(t.Context(), from, to, func(*sqldb.Tx) error { return nil })
	if err != nil || rows["entries"] != 2 || rows["entry_vectors"] != 2 {
		t.Fatal(rows, err)
	}
	var got string
	const all = `SELECT string_agg(concat(v.session, ' ', v.n, ' ', encode(v.vector, 'hex')), ', ' ORDER BY v.n) || ' to ' || min(s.embedded) || concat(' of ', min(i.model), ' ', min(i.prompt), ' ', min(i.dimensions), ' ', min(i.taken))
		FROM entry_vectors v JOIN sessions s ON s.id = v.session CROSS JOIN vector_identity i`
	if err := to.db.Read.QueryRowContext(t.Context(), all).Scan(&got); err != nil || got != "1 1 00ff, 1 2 0102 to 2 of m p 2 0" {
		t.Errorf("the vectors are %q, %v", got, err)
	}
	wantHits(t, "at first", to, "figs", 2, indexedKey)
	fillAll(t, to)
	wantIndex(t, "filled", to, search.State{Indexed: 2})
	wantHits(t, "filled", to, "figs", 2, indexedKey)
}

// No search reads a whole table, no matter how many entries there are.
func TestNoSearchReadsAWholeTable(t *testing.T) {
	var statements sqldbtest.Statements
	db, err := sqldb.OpenAt(statements.Watch(t.Context()), filepath.Join(t.TempDir(), "store.db"), Schema())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	s, err := Use(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	appendTexts(t, s, indexedKey, "one fig", "two figs")
	fillAll(t, s)
	appendTexts(t, s, indexedKey, "three figs")
	statements.Forget()
	wantHits(t, "among all", s, "two figs", 3, indexedKey, "main:test:2")
	if _, err := s.Words().SessionsSpokenIn(t.Context(), "main", []string{"test:1"}, 5); err != nil {
		t.Fatal(err)
	}
	asked := statements.List()
	if len(asked) < 5 {
		t.Fatalf("only %d statements were seen", len(asked))
	}
	sqldbtest.WantNoScan(t, db, asked, func(table, _ string) bool {
		return table != "sessions" && table != "entries" && table != "e" && table != "s"
	})
}

// Most questions about a year of messages find their answer among the first five hits.
func TestAnswersAreAmongTheFirstHits(t *testing.T) {
	t.Parallel()
	onEachDatabase(t, func(t *testing.T, place string) {
		s := openStore(t, place)
		loaded := searchtest.Load(t, s)
		fillAll(t, s)
		questions, err := searchtest.Tuning()
		if err != nil {
			t.Fatal(err)
		}
		if r := loaded.Measure(t, s.Words(), questions); r.Recall() < 0.85 {
			t.Error(r)
		}
	})
}

// appendFigTexts appends 100 texts with the word fig to each of 60 sessions, and returns their keys. Every
// fifth text also contains the word bloom, and the 51st text of three sessions the word kraken.
func appendFigTexts(t *testing.T, s *Store) (keys []string) {
	t.Helper()
	for i := range 60 {
		keys = append(keys, fmt.Sprint("main:test:", i))
		l, err := s.open(t.Context(), keys[i], 1)
		if err != nil {
			t.Fatal(err)
		}
		var entries []sessions.Entry
		for n := range 100 { // 6,000 in all
			text := fmt.Sprintf("fig %d of tree %d", n, i)
			if n%5 == 0 {
				text += " in bloom"
			}
			if n == 50 && i%20 == 0 {
				text += " with a kraken"
			}
			e, err := sessions.NewEntry("t", sessions.KindUser, sessions.User{Text: text})
			if err != nil {
				t.Fatal(err)
			}
			entries = append(entries, e)
		}
		if err := l.Append(t.Context(), l.Next(), entries...); err != nil {
			t.Fatal(err)
		}
	}
	fillAll(t, s)
	return keys
}

// For a word that nearly all entries contain, only some entries are read. Entries that also contain another
// word are found, however old they are.
func TestAVeryFrequentWord(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, place string) {
		s := openStore(t, place)
		keys := appendFigTexts(t, s) // more sessions than one query searches
		wantHits(t, "of the word", s, "fig", search.MaxHits, keys...)
		wantHits(t, "of the other", s, "kraken", 3, keys...)
		hits, err := s.Words().Search(t.Context(), search.Query{Words: "figs krakens", Sessions: keys})
		if err != nil || len(hits) != 10 {
			t.Fatalf("%d hits, %v", len(hits), err)
		}
		for i, h := range hits {
			if strings.Contains(h.Text, "kraken") != (i < 3) {
				t.Errorf("hit %d is %q", i, h.Text)
			}
		}
	})
}

// Once PostgreSQL has statistics of how frequent a word is, a search for it reads only the entries of the given
// sessions.
func TestASearchForAFrequentWordReadsOnlyTheSessions(t *testing.T) {
	place := sqldbtest.New(t)
	s := openStore(t, place)
	keys := appendFigTexts(t, s)
	if _, err := s.db.Exec(t.Context(), "ANALYZE entry_words"); err != nil {
		t.Fatal(err)
	}
	wantHits(t, "in half of the sessions", s, "bloom", search.MaxHits, keys[:30]...)
	if err := s.Close(); err != nil { // so that the server's processes end and report their statistics
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var scans, entries int64
	for scans == 0 && ctx.Err() == nil {
		row := sqldbtest.Query(t, "pgx", place, "SELECT idx_scan, idx_tup_read FROM pg_stat_user_indexes WHERE indexrelid = to_regclass('entry_words_words')")
		if _, err := fmt.Sscan(row[0], &scans, &entries); err != nil {
			t.Fatal(err)
		}
	}
	if entries != 600 {
		t.Errorf("%d scans took %d entries from the index, want the 600 of the sessions, and not all 1,200", scans, entries)
	}
}

// On SQLite, each indexing call adds a segment to the index. Segments are merged, so that a search doesn't have
// to look into all of them.
func TestPartsOfTheIndexAreMerged(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "store.db"))
	const calls = 15 // with one more, SQLite would merge the segments by itself
	for i := range calls {
		appendTexts(t, s, indexedKey, fmt.Sprintf("fig %d of a tree", i))
		fillAll(t, s)
	}
	var parts int
	if err := s.db.Read.QueryRowContext(t.Context(), "SELECT count(DISTINCT segid) FROM entry_words_idx").Scan(&parts); err != nil || parts > calls/2 {
		t.Errorf("after %d calls, the index has %d parts, %v", calls, parts, err)
	}
	wantHits(t, "merged", s, "fig", calls, indexedKey)
}

// The log contains a placeholder for a result that was shown only in its own turn. A search does not find the
// placeholder.
func TestPlaceholdersOfResultsAreNotFound(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, place string) {
		s := openStore(t, place)
		l, err := s.open(t.Context(), indexedKey, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, fleeting := range []bool{true, false} {
			e, err := sessions.NewEntry("t", sessions.KindToolResult, sessions.ToolResult{Content: fmt.Appendf(nil, `{"text":"a fig, fleeting: %t"}`, fleeting), IsPlaceholder: fleeting})
			if err == nil {
				err = l.Append(t.Context(), l.Next(), e)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		wantHits(t, "before the fill", s, "fig", 1, indexedKey)
		fillAll(t, s)
		wantHits(t, "after it", s, "fig", 1, indexedKey)
		wantIndex(t, "after it", s, search.State{Indexed: 1})
	})
}
