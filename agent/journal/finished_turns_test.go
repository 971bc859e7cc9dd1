package journal_test

import (
	"iter"
	"strings"
	"testing"

	"parley/agent/journal"
	"parley/sessions"
)

// entriesOf yields the entries, and counts how many were read.
func entriesOf(entries []sessions.Entry, read *int) iter.Seq2[sessions.Entry, error] {
	return func(yield func(sessions.Entry, error) bool) {
		for _, e := range entries {
			*read++
			if !yield(e, nil) {
				return
			}
		}
	}
}

// A turn that is over is read up to its last entry, however much the log has after it.
func TestATurnIsReadNoFurtherThanItsEnd(t *testing.T) {
	done := sessions.TurnDone{State: sessions.TurnCompleted, Outbound: []sessions.Reply{{ID: "one#reply", Text: "then"}}}
	begun := journal.NewEntry("one", sessions.KindTurnStarted, sessions.TurnStarted{})
	waited := journal.NewEntry("one", sessions.KindPublished, nil) // for an ask that was published while the turn waited
	unsendable := journal.NewEntry("one", sessions.KindNotice, sessions.Notice{Code: "unsendable"})
	published := journal.NewEntry("one", sessions.KindPublished, nil)
	other := journal.NewEntry("two", sessions.KindPublished, nil)
	for name, c := range map[string]struct {
		entries []sessions.Entry
		want    string
		read    int
	}{
		"published at once":    {[]sessions.Entry{begun, journal.NewEntry("one", sessions.KindTurnDone, done), published}, "turn_started turn_done published", 3},
		"published later":      {[]sessions.Entry{begun, journal.NewEntry("one", sessions.KindTurnDone, done), other, published}, "turn_started turn_done published", 4},
		"waited for people":    {[]sessions.Entry{begun, waited, journal.NewEntry("one", sessions.KindTurnDone, done), published}, "turn_started published turn_done published", 4},
		"could not be sent":    {[]sessions.Entry{begun, journal.NewEntry("one", sessions.KindTurnDone, done), unsendable, published}, "turn_started turn_done notice published", 4},
		"said nothing":         {[]sessions.Entry{begun, journal.NewEntry("one", sessions.KindTurnDone, sessions.TurnDone{State: sessions.TurnCancelled})}, "turn_started turn_done", 2},
		"not published so far": {[]sessions.Entry{begun, journal.NewEntry("one", sessions.KindTurnDone, done)}, "turn_started turn_done", 4},
	} {
		t.Run(name, func(t *testing.T) {
			read := 0
			records, err := journal.ReadTurn(entriesOf(append(c.entries, other, other), &read), "one")
			if err != nil {
				t.Fatal(err)
			}
			var kinds []string
			for _, r := range records {
				kinds = append(kinds, string(r.Kind))
			}
			if got := strings.Join(kinds, " "); got != c.want || read != c.read {
				t.Errorf("the turn is read as %q from %d entries, want %q from %d", got, read, c.want, c.read)
			}
		})
	}
}
