package sqlstore_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/sessions"
	"parley/sessions/sqldb"
	"parley/sessions/sqlstore"
)

// A session that the previous release wrote has a title immediately, and the title is stored with the next
// append.
func TestTitleOfAnOlderSession(t *testing.T) { onEachPlace(t, testTitleOfAnOlderSession) }

func testTitleOfAnOlderSession(t *testing.T, place string, query func(string) []string) {
	s := openTestStore(t, place)
	const key = "main:telegram:7"
	say := func(l sessions.Log, text string) {
		t.Helper()
		e, err := sessions.NewEntry("t", sessions.KindUser, sessions.User{Text: text})
		if err != nil {
			t.Fatal(err)
		}
		e.Person = "telegram:7"
		if err := l.Append(t.Context(), l.Next(), e); err != nil {
			t.Fatal(err)
		}
	}
	sumUp := func(l sessions.Log, sum sessions.Summary) {
		t.Helper()
		e, err := sessions.NewEntry("", sessions.KindSummary, sum)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Append(t.Context(), l.Next(), e); err != nil {
			t.Fatal(err)
		}
	}
	fence := int64(0)
	reopen := func() sessions.Log {
		t.Helper()
		fence++
		l, err := s.Open(t.Context(), key, fence)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	want := func(when, title string, noted int) {
		t.Helper()
		list, err := s.List(t.Context(), "", 9)
		if err != nil || len(list) != 1 || list[0].Title != title {
			t.Errorf("%s the list is %+v, %v, want the title %q", when, list, err, title)
		}
		if got := query("SELECT title FROM sessions"); !slices.Equal(got, []string{fmt.Sprint(noted)}) {
			t.Errorf("%s entry %s is noted, want %d", when, got, noted)
		}
	}
	l := reopen()
	say(l, "the first words")
	say(l, "others")
	query("UPDATE sessions SET title = 0") // as the previous release leaves it
	want("of an older session", "the first words", 0)
	l = reopen()
	say(l, "the third")
	want("after an append", "the first words", 1)
	sumUp(l, sessions.Summary{Covers: 3, Text: "so far"})
	want("after a summary", "the first words", 1)
	sumUp(l, sessions.Summary{Covers: 4})
	query("UPDATE sessions SET title = 1") // the previous release has carried out /new
	l = reopen()
	say(l, "something new")
	want("of a new conversation", "something new", 6)
	query("UPDATE entries SET data = '' WHERE n = 6") // the previous release has erased it
	want("without its words", "", 6)
}

// An entry without words never becomes the title, no matter who wrote it and what else it contains.
func TestOnlyEntriesWithWordsBecomeTitles(t *testing.T) {
	onEachPlace(t, func(t *testing.T, place string, _ func(string) []string) {
		s := openTestStore(t, place)
		reply := []sessions.Quote{{Kind: "reply", Name: "Berta", Text: ""}}
		silent := []sessions.User{{Name: "Anna"}, {Name: `"Anna","text":"x`}, {Name: "Anna", Sent: time.Now(), Quotes: reply}}
		of := reflect.TypeFor[sessions.User]()
		text, _ := of.FieldByName("Text")
		for i := text.Index[0] + 1; i < of.NumField(); i++ { // every field that may follow the text
			said := sessions.User{Name: "Anna"}
			switch field := reflect.ValueOf(&said).Elem().Field(i); field.Interface().(type) {
			case string:
				field.SetString("x")
			case bool:
				field.SetBool(true)
			case time.Time:
				field.Set(reflect.ValueOf(time.Now()))
			default:
				field.Set(reflect.ValueOf(reply))
			}
			silent = append(silent, said)
		}
		for i, first := range silent {
			key := fmt.Sprint("main:telegram:", i)
			l, err := s.Open(t.Context(), key, 1)
			if err != nil {
				t.Fatal(err)
			}
			for n, said := range []sessions.User{{Text: "gone"}, first, {Name: `","text":""`, Text: "the sun", Quotes: reply}} {
				e, err := sessions.NewEntry("t", sessions.KindUser, said)
				if err != nil {
					t.Fatal(err)
				}
				e.Cause, e.Person = fmt.Sprint("m", n), "telegram:7"
				if err := l.Append(t.Context(), l.Next(), e); err != nil {
					t.Fatal(err)
				}
			}
			if err := l.(sessions.MessageEraser).EraseMessage(t.Context(), "m0"); err != nil { //nolint:forcetypeassert // every log of the store is one
				t.Fatal(err)
			}
			page, err := s.Recent(t.Context(), sessions.SessionQuery{Keys: []string{key}, Limit: 1})
			if err != nil || len(page.Sessions) != 1 || page.Sessions[0].Title != "the sun" {
				t.Errorf("behind %+v is %+v, %v", first, page, err)
			}
		}
	})
}

// On PostgreSQL, a release that does not know titles by models may still erase. It counts its erasures but
// leaves the title, which then must not be shown.
func TestAnErasureByAnOlderReleaseRemovesTheTitle(t *testing.T) {
	onEachPlace(t, func(t *testing.T, place string, query func(string) []string) {
		s := openTestStore(t, place)
		const key, erased = "main:telegram:7", `'{"text":"","deleted":true}'`
		want := func(when, title string) {
			t.Helper()
			byKey, err := s.List(t.Context(), "", 9)
			byTime, errByTime := s.Recent(t.Context(), sessions.SessionQuery{Limit: 9})
			if err != nil || errByTime != nil || len(byKey) != 1 || len(byTime.Sessions) != 1 || byKey[0].Title != title || byTime.Sessions[0].Title != title {
				t.Errorf("%s the lists are %+v, %v, and %+v, %v, want the title %q", when, byKey, err, byTime, errByTime, title)
			}
		}
		fence := int64(0)
		name := func(n int64, title string) {
			t.Helper()
			fence++
			l, err := s.Open(t.Context(), key, fence)
			if err != nil {
				t.Fatal(err)
			}
			for i := len(l.Entries()); i < 3; i++ {
				e, err := sessions.NewEntry("t", sessions.KindUser, sessions.User{Text: fmt.Sprint("words ", i+1)})
				if err != nil {
					t.Fatal(err)
				}
				e.Person = "telegram:7"
				if err := l.Append(t.Context(), l.Next(), e); err != nil {
					t.Fatal(err)
				}
			}
			if err := l.(sessions.Titler).SetTitle(t.Context(), n, title); err != nil { //nolint:forcetypeassert // every log of the store is one
				t.Fatal(err)
			}
			want("before", title)
		}
		name(1, "Secret things")
		query("UPDATE sessions SET erasures = erasures + 1")
		query("UPDATE entries SET data = " + erased + " WHERE n = 2")
		want("without another message of which it was made", "words 1")
		name(1, "Other things")
		query("UPDATE sessions SET erasures = erasures + 1")
		query("UPDATE entries SET data = " + erased + " WHERE n = 1")
		want("without the first message", "words 3")
		query("DELETE FROM entries WHERE n = 1")
		want("without the first entry", "words 3")
		query("DELETE FROM entries")
		want("without any", "")
	})
}

// Sessions that the previous release wrote, and on PostgreSQL may still write, are listed like those of this
// release.
func TestRecentSessionsOfAnOlderRelease(t *testing.T) {
	onEachPlace(t, func(t *testing.T, place string, query func(string) []string) {
		older := sqlstore.Schema()
		before := func(all []string) []string {
			return all[:slices.IndexFunc(all, func(migration string) bool { return strings.Contains(migration, "ADD COLUMN title BIGINT") })]
		}
		older.SQLite, older.Postgres = before(older.SQLite), before(older.Postgres)
		db, err := sqldb.OpenAt(t.Context(), place, older)
		if err != nil {
			t.Fatal(err)
		}
		insert := func(key, day string) string {
			return "INSERT INTO sessions (key, fence, last, summary, covers, unfinished, created, updated) VALUES ('" + key + "', 1, 0, 0, 0, '', '2026-05-01T00:00:00.000000Z', '2026-05-" + day + "T10:20:30.000000Z')"
		}
		for key, day := range map[string]string{"main:telegram:7": "03", "main:web:ci:thread": "05", "poet:telegram:7:a:b": "04"} {
			if _, err := db.Exec(t.Context(), insert(key, day)); err != nil {
				t.Fatal(err)
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		s := openTestStore(t, place)
		want := func(q sessions.SessionQuery, keys ...string) {
			t.Helper()
			q.Limit = 9
			page, err := s.Recent(t.Context(), q)
			var got []string
			for _, info := range page.Sessions {
				got = append(got, info.Key)
			}
			if err != nil || !slices.Equal(got, keys) {
				t.Errorf("%+v finds %q, %v, want %q", q, got, err, keys)
			}
		}
		want(sessions.SessionQuery{}, "main:web:ci:thread", "poet:telegram:7:a:b", "main:telegram:7")
		want(sessions.SessionQuery{Agent: "main"}, "main:web:ci:thread", "main:telegram:7")
		want(sessions.SessionQuery{Channel: "telegram"}, "poet:telegram:7:a:b", "main:telegram:7")
		want(sessions.SessionQuery{Channel: "web", Chat: "ci"}, "main:web:ci:thread")
		query("UPDATE sessions SET updated = '2026-05-06T10:20:30.000000Z' WHERE key = 'main:telegram:7'")
		want(sessions.SessionQuery{}, "main:telegram:7", "main:web:ci:thread", "poet:telegram:7:a:b")
		if !sqldb.IsURL(place) {
			return // only one release can have it open
		}
		query(insert("main:web:ci:new", "07"))
		want(sessions.SessionQuery{}, "main:web:ci:new", "main:telegram:7", "main:web:ci:thread", "poet:telegram:7:a:b")
		want(sessions.SessionQuery{Channel: "web", Chat: "ci"}, "main:web:ci:new", "main:web:ci:thread")
	})
}
