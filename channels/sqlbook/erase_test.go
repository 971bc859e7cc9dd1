package sqlbook_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/sqlbook"
	"parley/sessions/sqldb/sqldbtest"
)

const secret = "a word that nobody else says"

var private, group = bus.Address{Channel: "telegram", Chat: "42"}, bus.Address{Channel: "telegram", Chat: "-100"}

// begin records a message and, if through is true, that its first part was sent.
func begin(t *testing.T, b *sqlbook.Book, id string, to bus.Address, through bool) {
	t.Helper()
	_, _, err := b.Begin(t.Context(), channels.Send{ID: id, To: to, Parts: []channels.SentPart{{Text: secret + id, Plain: secret}}})
	if err != nil {
		t.Fatal(err)
	}
	if through {
		if err := b.Mark(t.Context(), id, 0, channels.SentPart{State: channels.Sent, PlatformID: "1"}); err != nil {
			t.Fatal(err)
		}
	}
}

func erase(t *testing.T, b *sqlbook.Book, what sqlbook.Erasure, want sqlbook.Erased) {
	t.Helper()
	got, err := b.Erase(t.Context(), what)
	if err != nil || got != want {
		t.Errorf("erasing %+v: %+v, %v, want %+v", what, got, err, want)
	}
}

func TestErase(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { testErase(t, newPlace(t)) })
	t.Run("postgres", func(t *testing.T) { testErase(t, sqldbtest.New(t)) })
}

func testErase(t *testing.T, place string) {
	b := openBook(t, place)
	t.Cleanup(func() { b.Close() })
	begin(t, b, "private done", private, true)
	begin(t, b, "private open", private, false)
	begin(t, b, "group done", group, true)
	begin(t, b, "group open", group, false)
	begin(t, b, "thread", bus.Address{Channel: "telegram", Chat: "42", Thread: "7"}, true)
	for _, c := range []channels.Chat{{Address: private, Session: "main:telegram:42"}, {Address: group, Session: "main:telegram:-100"}} {
		if err := b.RecordChat(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	testEraseName(t, b)
	for i, origin := range []string{"ci", "ci", "nagios"} {
		if _, _, err := b.Accept(t.Context(), channels.Submission{ID: fmt.Sprint("m_", i), Origin: origin, Key: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
		if err := b.BindMessage(t.Context(), origin, "alert", group, "1"); err != nil {
			t.Fatal(err)
		}
	}
	erase(t, b, sqlbook.Erasure{}, sqlbook.Erased{})
	erase(t, b, sqlbook.Erasure{Sends: []string{"group open", "unknown"}, At: []bus.Address{private}, Sessions: []string{"main:telegram:42"}},
		sqlbook.Erased{Sends: 2, Chats: 1})
	erase(t, b, sqlbook.Erasure{Origin: "ci"}, sqlbook.Erased{Posts: 2})
	for id, want := range map[string]error{"private done": channels.ErrNoSend, "private open": nil, "group done": nil, "group open": channels.ErrNoSend, "thread": nil} {
		if _, err := b.Lookup(t.Context(), id); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", id, err, want)
		}
	}
	if all, err := b.Chats(t.Context()); err != nil || len(all) != 1 || all[0].Address != group {
		t.Errorf("chats are %v, %v", all, err)
	}
	if _, err := b.Submission(t.Context(), "m_2"); err != nil {
		t.Errorf("another's post: %v", err)
	}
	if id, err := b.BoundMessage(t.Context(), "ci", "alert", group); id != "" || err != nil {
		t.Errorf("a subject is bound to %q, %v", id, err)
	}
	begin(t, b, "stray", group, false)
	begin(t, b, "on the bus", group, false)
	waiting := []string{"private open", "on the bus"}
	erase(t, b, sqlbook.Erasure{Waiting: waiting, Asked: time.Now().Add(-time.Hour)}, sqlbook.Erased{})
	erase(t, b, sqlbook.Erasure{Waiting: waiting, Asked: time.Now().Add(time.Second)}, sqlbook.Erased{Sends: 1})
	erase(t, b, sqlbook.Erasure{Sends: []string{"on the bus"}}, sqlbook.Erased{Sends: 1})
	erase(t, b, sqlbook.Erasure{Before: time.Now().Add(-time.Hour)}, sqlbook.Erased{})
	erase(t, b, sqlbook.Erasure{Before: time.Now().Add(time.Hour)}, sqlbook.Erased{Sends: 2, Posts: 1})
	if _, err := b.Lookup(t.Context(), "private open"); err != nil {
		t.Errorf("what is still to be sent: %v", err)
	}
}

// Erasing a session erases the messages that it wrote, and those of which nobody knows who wrote them.
func TestEraseSession(t *testing.T) {
	for name, place := range map[string]func(testing.TB) string{"sqlite": newPlace, "postgres": func(t testing.TB) string { return sqldbtest.New(t) }} {
		t.Run(name, func(t *testing.T) {
			b := openBook(t, place(t))
			t.Cleanup(func() { b.Close() })
			for _, send := range []channels.Send{
				{ID: "answer", To: group, Session: "main:x"}, {ID: "notice", To: private, Writer: "main:x"}, {ID: "unknown", To: group},
				{ID: "unknown elsewhere", To: private}, {ID: "another's answer", To: group, Session: "ops:x"}, {ID: "another's notice", To: group, Writer: "ops:x"},
				{ID: "another's draft", To: group, Writer: "ops:x", Parts: []channels.SentPart{{State: channels.Drafted}}},
			} {
				if send.Parts == nil {
					send.Parts = []channels.SentPart{{Text: "x"}}
				}
				if _, _, err := b.Begin(t.Context(), send); err != nil {
					t.Fatal(err)
				}
				if send.Parts[0].State == "" {
					if err := b.Mark(t.Context(), send.ID, 0, channels.SentPart{State: channels.Sent}); err != nil {
						t.Fatal(err)
					}
				}
				if got, err := b.Lookup(t.Context(), send.ID); err != nil || got.Session != send.Session || got.Writer != send.Writer {
					t.Errorf("%s is of %q and %q, %v", send.ID, got.Session, got.Writer, err)
				}
			}
			erase(t, b, sqlbook.Erasure{Sessions: []string{"main:x"}, Places: []bus.Address{group}}, sqlbook.Erased{Sends: 3})
			for _, id := range []string{"unknown elsewhere", "another's answer", "another's notice", "another's draft"} {
				if _, err := b.Lookup(t.Context(), id); err != nil {
					t.Errorf("%s: %v", id, err)
				}
			}
		})
	}
}

// A person's name is erased, but not that they are paired.
func testEraseName(t *testing.T, b *sqlbook.Book) {
	t.Helper()
	for _, person := range []string{"telegram:42", "telegram:43"} {
		if _, err := b.RequestPairing(t.Context(), person, person); err != nil {
			t.Fatal(err)
		}
		if err := b.SetName(t.Context(), person, "Ada"); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.RecordChat(t.Context(), channels.Chat{Address: private, Person: "telegram:42", Name: "Ada"}); err != nil {
		t.Fatal(err)
	}
	erase(t, b, sqlbook.Erasure{Person: "telegram:42"}, sqlbook.Erased{})
	pairings, err := b.Pairings(t.Context())
	if err != nil || len(pairings) != 2 || pairings[0].Name != "" || pairings[1].Name != "Ada" {
		t.Errorf("pairings are %+v, %v", pairings, err)
	}
	all, err := b.Chats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if c.Person != "" || c.Name != "" {
			t.Errorf("the chat is %+v still", c)
		}
	}
}

// countSecretInFiles counts how often the secret occurs in the files of a book.
func countSecretInFiles(t *testing.T, place string) (n int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(filepath.Dir(place), "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		n += bytes.Count(raw, []byte(secret))
	}
	return n
}

func TestEraseLeavesNoTrace(t *testing.T) {
	place := newPlace(t)
	b := openBook(t, place)
	t.Cleanup(func() { b.Close() })
	for i := range 50 {
		begin(t, b, fmt.Sprint(i), private, i%2 == 0)
	}
	var open []string
	for i := 1; i < 50; i += 2 {
		open = append(open, fmt.Sprint(i))
	}
	if countSecretInFiles(t, place) == 0 {
		t.Fatal("the files do not hold it: the test cannot fail")
	}
	erase(t, b, sqlbook.Erasure{Sends: open}, sqlbook.Erased{Sends: 25})
	if n := countSecretInFiles(t, place); n != 0 {
		t.Errorf("%d traces are left", n)
	}
}

func TestEraseRatings(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { testEraseRatings(t, newPlace(t)) })
	t.Run("postgres", func(t *testing.T) { testEraseRatings(t, sqldbtest.New(t)) })
}

func testEraseRatings(t *testing.T, place string) {
	b := openBook(t, place)
	t.Cleanup(func() { b.Close() })
	long := time.Now().Add(-time.Hour)
	for i, session := range []string{"main:telegram:42", "main:telegram:-100"} {
		to := []bus.Address{private, group}[i]
		id := bus.ReplyID(fmt.Sprint("turn", i))
		if _, _, err := b.Begin(t.Context(), channels.Send{ID: id, To: to, Session: session, Parts: []channels.SentPart{{Text: "x"}}}); err != nil {
			t.Fatal(err)
		}
		if err := b.Mark(t.Context(), id, 0, channels.SentPart{State: channels.Sent, PlatformID: "1"}); err != nil {
			t.Fatal(err)
		}
		for n, person := range []string{"telegram:1", "telegram:2", "telegram:3"} {
			r := channels.Rating{Person: person, At: to, Message: "1", Rated: long.Add(time.Duration(n) * time.Hour)}
			if _, changed, err := b.Rate(t.Context(), r); err != nil || !changed {
				t.Fatalf("%+v was not kept: %v", r, err)
			}
		}
	}
	erase(t, b, sqlbook.Erasure{Person: "telegram:2"}, sqlbook.Erased{Ratings: 2})
	erase(t, b, sqlbook.Erasure{Sessions: []string{"main:telegram:42"}}, sqlbook.Erased{Sends: 1, Ratings: 2})
	erase(t, b, sqlbook.Erasure{Before: long.Add(time.Minute)}, sqlbook.Erased{Ratings: 1})
	if all, err := b.Ratings(t.Context(), "main:telegram:-100"); err != nil || len(all) != 1 || all[0].Person != "telegram:3" {
		t.Errorf("left is %+v, %v", all, err)
	}
}

func TestEraseMemories(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { testEraseMemories(t, newPlace(t)) })
	t.Run("postgres", func(t *testing.T) { testEraseMemories(t, sqldbtest.New(t)) })
}

// Memories of a person are erased with that person, for all linked accounts. The others stay linked to each
// other.
func testEraseMemories(t *testing.T, place string) {
	b := openBook(t, place)
	t.Cleanup(func() { b.Close() })
	keep := func(scope, owner, text string) {
		t.Helper()
		if err := b.Remember(t.Context(), scope, owner, owner+text, false, false, func(string) (string, error) { return text, nil }); err != nil {
			t.Fatal(err)
		}
	}
	for _, person := range []string{"slack:1", "discord:1"} {
		code, err := b.OfferLink(t.Context(), channels.LinkRequest{Person: "telegram:1", Chat: "chat", Cause: person})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Link(t.Context(), channels.Linking{Code: code, Person: person, Cause: person}); err != nil {
			t.Fatal(err)
		}
	}
	keep(channels.ScopePerson, "slack:1", secret)
	keep(channels.ScopePerson, "telegram:2", "another's")
	keep(channels.ScopeAgent, "main", "the agent's")
	recalls := func(person, want string) {
		t.Helper()
		if got, _, err := b.Memory(t.Context(), channels.ScopePerson, person); err != nil || got != want {
			t.Errorf("of %s is remembered %q, %v", person, got, err)
		}
	}
	recalls("telegram:1", secret)
	erase(t, b, sqlbook.Erasure{Person: "telegram:1"}, sqlbook.Erased{Memories: 1}) // the account of these people
	for _, person := range []string{"telegram:1", "slack:1", "discord:1"} {
		recalls(person, "")
	}
	if all, err := b.LinkedWith(t.Context(), "slack:1"); err != nil || len(all) != 2 || all[0].Account == "telegram:1" {
		t.Errorf("linked are %+v, %v", all, err)
	}
	recalls("telegram:2", "another's")
	erase(t, b, sqlbook.Erasure{Before: time.Now().Add(-time.Hour)}, sqlbook.Erased{})
	erase(t, b, sqlbook.Erasure{Before: time.Now().Add(time.Hour)}, sqlbook.Erased{Memories: 1})
	recalls("telegram:2", "")
	if got, _, err := b.Memory(t.Context(), channels.ScopeAgent, "main"); err != nil || got != "the agent's" {
		t.Errorf("of the agent is remembered %q, %v", got, err)
	}
}

// Proposals are erased with their person, with their session, and by age.
func TestEraseProposals(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { testEraseProposals(t, newPlace(t)) })
	t.Run("postgres", func(t *testing.T) { testEraseProposals(t, sqldbtest.New(t)) })
}

func testEraseProposals(t *testing.T, place string) {
	b := openBook(t, place)
	t.Cleanup(func() { b.Close() })
	propose := func(session, person, scope, text string) {
		t.Helper()
		if err := b.StoreProposals(t.Context(), session, 9, []channels.Proposal{{Scope: scope, Owner: person, Person: person, Text: secret + text, At: private, Expires: time.Now().Add(time.Hour)}}); err != nil {
			t.Fatal(err)
		}
	}
	left := func(person string, want int) {
		t.Helper()
		if all, err := b.ProposalsTo(t.Context(), person); err != nil || len(all) != want {
			t.Errorf("of %s there is %+v, %v", person, all, err)
		}
	}
	propose("main:telegram:1", "telegram:1", channels.ScopePerson, "")
	propose("ops:telegram:1", "telegram:1", channels.ScopeAgent, "")
	for _, session := range []string{"main:telegram:2", "ops:telegram:2"} {
		propose(session, "telegram:2", channels.ScopePerson, "")
	}
	erase(t, b, sqlbook.Erasure{Person: "telegram:1"}, sqlbook.Erased{})
	left("telegram:1", 0)
	left("telegram:2", 2)
	erase(t, b, sqlbook.Erasure{Sessions: []string{"main:telegram:2"}}, sqlbook.Erased{})
	left("telegram:2", 1)
	if covers, _, err := b.LastProposed(t.Context(), "main:telegram:2"); err != nil || covers != 0 {
		t.Errorf("the erased session was looked through up to %d, %v", covers, err)
	}
	erase(t, b, sqlbook.Erasure{Before: time.Now().Add(-time.Hour)}, sqlbook.Erased{})
	left("telegram:2", 1)
	erase(t, b, sqlbook.Erasure{Before: time.Now().Add(time.Hour)}, sqlbook.Erased{})
	left("telegram:2", 0)
	if n := countSecretInFiles(t, place); n > 0 {
		t.Errorf("there are %d traces", n)
	}
}

// Anybody may have the memories of them erased. Because others have to wait while the file is purged, that
// happens only if there was a memory.
func TestForgettingNothingPurgesNothing(t *testing.T) {
	place := newPlace(t)
	b := openBook(t, place)
	t.Cleanup(func() { b.Close() })
	rewritten := func() (n int) { // each purge raises this number
		db, err := sql.Open("sqlite", place)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if err := db.QueryRowContext(t.Context(), "PRAGMA schema_version").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	forget := func(person string, times int) {
		t.Helper()
		before := rewritten()
		if err := b.Forget(t.Context(), channels.ScopePerson, person); err != nil {
			t.Error(err)
		}
		if n := rewritten() - before; n != times {
			t.Errorf("the file was rewritten %d times as %s was forgotten, want %d", n, person, times)
		}
	}
	if err := b.Remember(t.Context(), channels.ScopePerson, "c:1", "k1", false, false, func(string) (string, error) { return secret, nil }); err != nil {
		t.Fatal(err)
	}
	forget("c:2", 0)
	forget("c:1", 1)
	if n := countSecretInFiles(t, place); n > 0 {
		t.Errorf("there are %d traces", n)
	}
	forget("c:1", 0)
	if err := b.StoreProposals(t.Context(), "main:c:1", 9, []channels.Proposal{{Scope: channels.ScopePerson, Owner: "c:1", Person: "c:1", Text: secret, At: private, Expires: time.Now().Add(time.Hour)}}); err != nil {
		t.Fatal(err)
	}
	forget("c:1", 1)
	if n := countSecretInFiles(t, place); n > 0 {
		t.Errorf("there are %d traces", n)
	}
}

// The sends of many sessions are erased together, and those of other sessions stay.
func TestEraseWhatManySessionsWrote(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { testEraseMany(t, newPlace(t)) })
	t.Run("postgres", func(t *testing.T) { testEraseMany(t, sqldbtest.New(t)) })
}

func testEraseMany(t *testing.T, place string) {
	b := openBook(t, place)
	t.Cleanup(func() { b.Close() })
	const most = 231
	key := func(n int) string { return fmt.Sprint("main:telegram:", n) }
	for n := range most + 2 {
		send := channels.Send{ID: key(n), To: private, Session: key(n), Parts: []channels.SentPart{{Text: "x", Plain: "x"}}}
		if n%2 == 1 {
			send.Session, send.Writer = "", key(n)
		}
		if _, _, err := b.Begin(t.Context(), send); err != nil {
			t.Fatal(err)
		}
		if err := b.Mark(t.Context(), send.ID, 0, channels.SentPart{State: channels.Sent, PlatformID: "1"}); err != nil {
			t.Fatal(err)
		}
	}
	begun := 0
	for _, n := range []int{1, 2, most - 3} { // one, a few, and more than fit into one query
		var keys []string
		for range n {
			keys = append(keys, key(begun))
			begun++
		}
		erase(t, b, sqlbook.Erasure{Sessions: keys}, sqlbook.Erased{Sends: int64(n)})
	}
	for _, left := range []int{most, most + 1} {
		if _, err := b.Lookup(t.Context(), key(left)); err != nil {
			t.Errorf("of %s: %v", key(left), err)
		}
	}
}
