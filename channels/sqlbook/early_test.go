package sqlbook_test

import (
	"fmt"
	"testing"
	"time"

	"parley/channels"
	"parley/channels/sqlbook"
	"parley/sessions/sqldb"
)

// share makes a book in a database of its own, and returns a function that records an answer's send
// as with its publication. What happens is called after the share was made and before it is written.
func share(t *testing.T) (b *sqlbook.Book, record func(id string, happens func()) bool) {
	t.Helper()
	db, err := sqldb.OpenAt(t.Context(), file(t), sqlbook.Schema())
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

func nothing() {}

func TestAnErasureLeavesAnAnswerThatIsBeingPublished(t *testing.T) {
	b, record := share(t)
	var asked time.Time
	record("published since", func() { asked = time.Now() })
	record("erased", nothing)
	record("of others", nothing)
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

// Answers that wait for a slow platform are not begun with their publication without end, and none
// of those that were is forgotten.
func TestFewAnswersBeginWithTheirPublication(t *testing.T) {
	b, record := share(t)
	const many = 5000
	begun := 0
	for begun < many && record(fmt.Sprint(begun), nothing) {
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
	if !record("next", nothing) {
		t.Error("when some have begun, there is no room for the next")
	}
}
