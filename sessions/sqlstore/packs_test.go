package sqlstore

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"parley/sessions"
)

const packedKey = "main:telegram:1"

// A packedSession is a growing session in a store on SQLite, which keeps packs of it.
type packedSession struct {
	*Store
	t     *testing.T
	log   *log
	fence int64
	turns int
}

func newPackedSession(t *testing.T) *packedSession {
	t.Helper()
	p := &packedSession{Store: openStore(t, filepath.Join(t.TempDir(), "store.db")), t: t}
	p.reopen()
	return p
}

// reopen opens the session under a higher fence, as after an erasure.
func (p *packedSession) reopen() {
	p.t.Helper()
	p.fence = max(p.fence+1, time.Now().UnixMicro()) // fences are times, as buses issue them
	l, err := p.open(p.t.Context(), packedKey, p.fence)
	if err != nil {
		p.t.Fatal(err)
	}
	p.log = l
}

// appendEntry appends an entry.
func (p *packedSession) appendEntry(turn string, kind sessions.Kind, cause string, data any) {
	p.t.Helper()
	e, err := sessions.NewEntry(turn, kind, data)
	if err != nil {
		p.t.Fatal(err)
	}
	e.Cause = cause
	if kind == sessions.KindUser {
		e.Person = "telegram:ann"
	}
	if err := p.log.Append(p.t.Context(), p.log.Next(), e); err != nil {
		p.t.Fatal(err)
	}
}

// appendTurn appends a turn in which somebody says a text, with a number of tool calls. If open is true, the
// appendTurn does not end.
func (p *packedSession) appendTurn(text string, calls int, open bool) {
	p.t.Helper()
	p.turns++
	id := fmt.Sprint("m", p.turns)
	p.appendEntry(id, sessions.KindTurnStarted, "", sessions.TurnStarted{Route: json.RawMessage(`{}`)})
	p.appendEntry(id, sessions.KindUser, id, sessions.User{Text: text})
	for range calls {
		p.appendEntry(id, sessions.KindToolUse, "", sessions.ToolUse{Name: "x", Args: json.RawMessage(`{}`)})
		p.appendEntry(id, sessions.KindUsage, "", sessions.Usage{Model: "m", Input: int64(p.turns)})
		p.appendEntry(id, sessions.KindToolStarted, "", sessions.ToolStarted{Attempt: 1})
		p.appendEntry(id, sessions.KindToolResult, "", sessions.ToolResult{Content: json.RawMessage(`"y"`)})
	}
	p.appendEntry(id, sessions.KindText, "", sessions.Text{Text: "you said " + text})
	if open {
		return
	}
	if p.turns%3 > 0 { // some providers report no usage
		p.appendEntry(id, sessions.KindUsage, "", sessions.Usage{Model: "m", Input: int64(p.turns)})
	}
	p.appendEntry(id, sessions.KindTurnDone, "", sessions.TurnDone{State: sessions.TurnCompleted})
	p.appendEntry(id, sessions.KindPublished, "", nil)
}

// checkReads checks that a read with packs returns the same as a read without them.
func (p *packedSession) checkReads(when string) {
	p.t.Helper()
	q := *p.queries
	q.whole = nil
	without := *p.logs
	without.queries = &q
	want, _, err := without.Peek(p.t.Context(), packedKey)
	if err != nil {
		p.t.Fatal(err)
	}
	got, _, err := p.Peek(p.t.Context(), packedKey)
	if err != nil {
		p.t.Fatal(err)
	}
	if got.Next() != want.Next() || !reflect.DeepEqual(got.Entries(), want.Entries()) {
		p.t.Fatalf("%s: read with packs:\n%v\nwant\n%v", when, got.Entries(), want.Entries())
	}
	p.db.Flush()
}

// packStats returns the number of packs, the number of the last entry in them, and all their text.
func (p *packedSession) packStats() (n, last int64, text string) {
	p.t.Helper()
	if err := p.db.Read.QueryRowContext(p.t.Context(), "SELECT count(*), coalesce(max(last), 0), coalesce(group_concat(text), '') FROM packs").Scan(&n, &last, &text); err != nil {
		p.t.Fatal(err)
	}
	return n, last, text
}

// Whatever happens in a session, a read returns the same with packs and without them.
func TestReadsWithAndWithoutPacksAreTheSame(t *testing.T) {
	p := newPackedSession(t)
	r := rand.New(rand.NewPCG(1, 2))
	most := int64(0)
	for n := range 150 {
		p.appendTurn(fmt.Sprint("what is said in turn ", n), r.IntN(3), r.IntN(12) == 0)
		if r.IntN(10) == 0 {
			p.appendEntry(fmt.Sprint("c", n), sessions.KindCommand, fmt.Sprint("c", n), sessions.Command{Name: "status"})
			p.appendEntry("", sessions.KindUsage, "", sessions.Usage{Model: "m", Input: 1})
		}
		if r.IntN(40) == 0 { // turns that were left open also end
			for _, open := range p.log.state.unfinished {
				p.appendEntry(open.ID, sessions.KindTurnDone, "", sessions.TurnDone{State: sessions.TurnCancelled})
			}
			p.appendEntry("", sessions.KindSummary, "", sessions.Summary{Covers: p.log.Next() - 20 - r.Int64N(40), Keep: []int64{2, p.log.Next() - 70}, Text: "so far"})
		}
		if r.IntN(2) == 0 {
			for _, open := range p.log.state.unfinished {
				p.appendEntry(open.ID, sessions.KindTurnDone, "", sessions.TurnDone{State: sessions.TurnCancelled})
			}
		}
		p.checkReads(fmt.Sprint("after turn ", n))
		packs, _, _ := p.packStats()
		most = max(most, packs)
	}
	if most < 2 {
		t.Errorf("there were at most %d packs", most)
	}
}

// An erasure removes entries from packs at the same time. New packs are made without them.
func TestPacksContainNothingErased(t *testing.T) {
	erase := map[string]func(p *packedSession) error{
		"a message": func(p *packedSession) error { return p.log.EraseMessage(p.t.Context(), "m10") },
		"a person":  func(p *packedSession) error { _, err := p.ErasePerson(p.t.Context(), "telegram:ann"); return err },
		"a session": func(p *packedSession) error { _, err := p.EraseSession(p.t.Context(), packedKey); return err },
		"the past": func(p *packedSession) error {
			_, err := p.EraseBefore(p.t.Context(), time.Now().Add(time.Minute))
			return err
		},
	}
	for name, erase := range erase {
		t.Run(name, func(t *testing.T) {
			p := newPackedSession(t)
			for n := range 50 {
				p.appendTurn(fmt.Sprintf("secret %d.", n+1), 0, false)
				if n%25 == 24 {
					p.checkReads("before")
				}
			}
			grown := p.log.state.lastEntry
			if n, last, text := p.packStats(); n != 2 || last != grown || !strings.Contains(text, "secret 10.") {
				t.Fatalf("%d packs up to entry %d of %d", n, last, grown)
			}
			if err := erase(p); err != nil {
				t.Fatal(err)
			}
			_, _, text := p.packStats()
			if strings.Contains(text, `"secret 10."`) {
				t.Error("it is in a pack")
			}
			p.reopen()
			for range 2 {
				p.appendTurn("more", 0, false)
				p.checkReads("afterwards")
			}
			if _, last, text := p.packStats(); strings.Contains(text, `"secret 10."`) || name == "a message" && last <= grown {
				t.Errorf("packs up to entry %d; it is in them: %t", last, strings.Contains(text, `"secret 10."`))
			}
		})
	}
}

// Long entries are not copied into packs.
func TestLongEntriesAreNotPacked(t *testing.T) {
	p := newPackedSession(t)
	for range 50 {
		p.appendTurn(strings.Repeat("long ", 400), 0, false)
	}
	p.checkReads("long")
	if n, _, _ := p.packStats(); n != 0 {
		t.Errorf("%d packs", n)
	}
}

// No pack is made of entries that are all erased: it would outlive its session, whose number may be given to
// another.
func TestErasedEntriesAreNotPacked(t *testing.T) {
	p := newPackedSession(t)
	p.appendTurn("old", 0, false)
	gone := p.log.state.lastEntry
	cut := time.Now()
	p.appendTurn("new", 0, false)
	if _, err := p.EraseBefore(t.Context(), cut); err != nil {
		t.Fatal(err)
	}
	p.reopen()
	p.pack(p.log, 1, 1, gone)
	p.pack(p.log, 1, gone+1, p.log.state.lastEntry)
	p.db.Flush()
	if n, last, text := p.packStats(); n != 1 || last != p.log.state.lastEntry || !strings.Contains(text, `"new"`) {
		t.Errorf("%d packs up to entry %d: %s", n, last, text)
	}
	if _, err := p.EraseSession(t.Context(), packedKey); err != nil {
		t.Fatal(err)
	}
	if n, _, text := p.packStats(); n != 0 {
		t.Errorf("%d packs have outlived the session: %s", n, text)
	}
}
