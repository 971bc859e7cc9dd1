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

// A packing is a store on SQLite with a session that grows.
type packing struct {
	*Store
	t     *testing.T
	log   *log
	fence int64
	turns int
}

func newPacking(t *testing.T) *packing {
	t.Helper()
	p := &packing{Store: openStore(t, filepath.Join(t.TempDir(), "store.db")), t: t}
	p.hold()
	return p
}

// hold opens the session under a higher fence, as after an erasure.
func (p *packing) hold() {
	p.t.Helper()
	p.fence = max(p.fence+1, time.Now().UnixMicro()) // as buses give them
	l, err := p.open(p.t.Context(), packedKey, p.fence)
	if err != nil {
		p.t.Fatal(err)
	}
	p.log = l
}

// add appends an entry.
func (p *packing) add(turn string, kind sessions.Kind, cause string, data any) {
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

// turn appends a turn in which somebody says a text, with so many calls of tools. It has no end if open is true.
func (p *packing) turn(text string, calls int, open bool) {
	p.t.Helper()
	p.turns++
	id := fmt.Sprint("m", p.turns)
	p.add(id, sessions.KindTurnStarted, "", sessions.TurnStarted{Route: json.RawMessage(`{}`)})
	p.add(id, sessions.KindUser, id, sessions.User{Text: text})
	for range calls {
		p.add(id, sessions.KindToolUse, "", sessions.ToolUse{Name: "x", Args: json.RawMessage(`{}`)})
		p.add(id, sessions.KindUsage, "", sessions.Usage{Model: "m", Input: int64(p.turns)})
		p.add(id, sessions.KindToolStarted, "", sessions.ToolStarted{Attempt: 1})
		p.add(id, sessions.KindToolResult, "", sessions.ToolResult{Content: json.RawMessage(`"y"`)})
	}
	p.add(id, sessions.KindText, "", sessions.Text{Text: "you said " + text})
	if open {
		return
	}
	if p.turns%3 > 0 { // some providers count nothing
		p.add(id, sessions.KindUsage, "", sessions.Usage{Model: "m", Input: int64(p.turns)})
	}
	p.add(id, sessions.KindTurnDone, "", sessions.TurnDone{State: sessions.TurnCompleted})
	p.add(id, sessions.KindPublished, "", nil)
}

// check compares what is read with packs with what is read without them.
func (p *packing) check(when string) {
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

// packed returns how many packs there are, the number of the last entry in them, and all their text.
func (p *packing) packed() (n, last int64, text string) {
	p.t.Helper()
	if err := p.db.Read.QueryRowContext(p.t.Context(), "SELECT count(*), coalesce(max(last), 0), coalesce(group_concat(text), '') FROM packs").Scan(&n, &last, &text); err != nil {
		p.t.Fatal(err)
	}
	return n, last, text
}

// What is read of a session is the same with packs and without them, whatever happens in it.
func TestASessionIsReadFromPacksAsItIs(t *testing.T) {
	p := newPacking(t)
	r := rand.New(rand.NewPCG(1, 2))
	most := int64(0)
	for n := range 150 {
		p.turn(fmt.Sprint("what is said in turn ", n), r.IntN(3), r.IntN(12) == 0)
		if r.IntN(10) == 0 {
			p.add(fmt.Sprint("c", n), sessions.KindCommand, fmt.Sprint("c", n), sessions.Command{Name: "status"})
			p.add("", sessions.KindUsage, "", sessions.Usage{Model: "m", Input: 1})
		}
		if r.IntN(40) == 0 { // turns that were left open are over, too
			for _, open := range p.log.state.unfinished {
				p.add(open.ID, sessions.KindTurnDone, "", sessions.TurnDone{State: sessions.TurnCancelled})
			}
			p.add("", sessions.KindSummary, "", sessions.Summary{Covers: p.log.Next() - 20 - r.Int64N(40), Keep: []int64{2, p.log.Next() - 70}, Text: "so far"})
		}
		if r.IntN(2) == 0 {
			for _, open := range p.log.state.unfinished {
				p.add(open.ID, sessions.KindTurnDone, "", sessions.TurnDone{State: sessions.TurnCancelled})
			}
		}
		p.check(fmt.Sprint("after turn ", n))
		packs, _, _ := p.packed()
		most = max(most, packs)
	}
	if most < 2 {
		t.Errorf("there were at most %d packs", most)
	}
}

// What is erased from the log is erased from packs at the same time, and packs are made again without it.
func TestPacksKeepNothingThatWasErased(t *testing.T) {
	erase := map[string]func(p *packing) error{
		"a message": func(p *packing) error { return p.log.EraseMessage(p.t.Context(), "m10") },
		"a person":  func(p *packing) error { _, err := p.ErasePerson(p.t.Context(), "telegram:ann"); return err },
		"a session": func(p *packing) error { _, err := p.EraseSession(p.t.Context(), packedKey); return err },
		"the past": func(p *packing) error {
			_, err := p.EraseBefore(p.t.Context(), time.Now().Add(time.Minute))
			return err
		},
	}
	for name, erase := range erase {
		t.Run(name, func(t *testing.T) {
			p := newPacking(t)
			for n := range 50 {
				p.turn(fmt.Sprintf("secret %d.", n+1), 0, false)
				if n%25 == 24 {
					p.check("before")
				}
			}
			grown := p.log.state.last
			if n, last, text := p.packed(); n != 2 || last != grown || !strings.Contains(text, "secret 10.") {
				t.Fatalf("%d packs up to entry %d of %d", n, last, grown)
			}
			if err := erase(p); err != nil {
				t.Fatal(err)
			}
			_, _, text := p.packed()
			if strings.Contains(text, `"secret 10."`) {
				t.Error("it is in a pack")
			}
			p.hold()
			for range 2 {
				p.turn("more", 0, false)
				p.check("afterwards")
			}
			if _, last, text := p.packed(); strings.Contains(text, `"secret 10."`) || name == "a message" && last <= grown {
				t.Errorf("packs up to entry %d; it is in them: %t", last, strings.Contains(text, `"secret 10."`))
			}
		})
	}
}

// Long entries are not copied.
func TestOfLongEntriesThereAreNoPacks(t *testing.T) {
	p := newPacking(t)
	for range 50 {
		p.turn(strings.Repeat("long ", 400), 0, false)
	}
	p.check("long")
	if n, _, _ := p.packed(); n != 0 {
		t.Errorf("%d packs", n)
	}
}

// No pack is made of entries that are all gone: it would outlive its session, and another may get that one's number.
func TestOfErasedEntriesThereAreNoPacks(t *testing.T) {
	p := newPacking(t)
	p.turn("old", 0, false)
	gone := p.log.state.last
	cut := time.Now()
	p.turn("new", 0, false)
	if _, err := p.EraseBefore(t.Context(), cut); err != nil {
		t.Fatal(err)
	}
	p.hold()
	p.pack(p.log, 1, 1, gone)
	p.pack(p.log, 1, gone+1, p.log.state.last)
	p.db.Flush()
	if n, last, text := p.packed(); n != 1 || last != p.log.state.last || !strings.Contains(text, `"new"`) {
		t.Errorf("%d packs up to entry %d: %s", n, last, text)
	}
	if _, err := p.EraseSession(t.Context(), packedKey); err != nil {
		t.Fatal(err)
	}
	if n, _, text := p.packed(); n != 0 {
		t.Errorf("%d packs have outlived the session: %s", n, text)
	}
}
