package sqlbook_test

import (
	"fmt"
	"testing"
	"time"

	"parley/channels"
	"parley/channels/sqlbook"
	"parley/sessions/sqldb"
)

// newSharingBook makes a book in a database of its own. It also returns a function that records an answer's
// send as if it were published in the same write; happens is called after the share was made and before it is
// written.
func newSharingBook(t *testing.T) (b *sqlbook.Book, record func(id string, happens func()) bool) {
	t.Helper()
	db, err := sqldb.OpenAt(t.Context(), newPlace(t), sqlbook.Schema())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if b, err = sqlbook.Use(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b, func(id string, happens func()) bool {
		t.Helper()
		s, ok := b.BeginShare(channels.Send{ID: id, To: private, Parts: []channels.SentPart{{Text: "hello"}}})
		if !ok {
			return false
		}
		happens()
		if err := db.Write(t.Context(), func(tx *sqldb.Tx) error {
			_, err := s.Write(tx)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		s.End(true)
		return true
	}
}

func doNothing() {}

func TestAnErasureLeavesAnAnswerThatIsBeingPublished(t *testing.T) {
	b, record := newSharingBook(t)
	var asked time.Time
	record("published since", func() { asked = time.Now() })
	record("erased", doNothing)
	record("of others", doNothing)
	erase(t, b, sqlbook.Erasure{Sends: []string{"erased"}, Asked: asked}, sqlbook.Erased{Sends: 1})
	for id, want := range map[string]string{"published since": "hello", "erased": "anew", "of others": "hello"} {
		known, fresh, err := b.Begin(t.Context(), channels.Send{ID: id, To: private, Parts: []channels.SentPart{{Text: "anew"}}})
		if err != nil || !fresh || known.Parts[0].Text != want {
			t.Errorf("%s begins as %+v, %v, %v, want it fresh with the text %q", id, known, fresh, err, want)
		}
		if _, err := b.Lookup(t.Context(), id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// If answers wait for a slow platform, only a limited number of them are recorded early, and none of these is
// forgotten.
func TestTheNumberOfEarlySendsIsLimited(t *testing.T) {
	b, record := newSharingBook(t)
	const many = 5000
	begun := 0
	for begun < many && record(fmt.Sprint(begun), doNothing) {
		begun++
	}
	if begun == many {
		t.Fatalf("%d sends wait for their Begin", begun)
	}
	for _, id := range []string{"0", fmt.Sprint(begun - 1)} {
		if _, fresh, err := b.Begin(t.Context(), channels.Send{ID: id}); !fresh || err != nil {
			t.Errorf("%s is forgotten: %v, %v", id, fresh, err)
		}
	}
	if !record("next", doNothing) {
		t.Error("when some have begun, there is no room for the next")
	}
}
