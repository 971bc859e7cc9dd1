package sessionstest

import (
	"context"
	"errors"
	"fmt"
	"parley/sessions"
	"slices"
	"strings"
	"testing"
	"time"
)

func testErasePerson(t *testing.T, p place) {
	s := p.open()
	mustAppend(t, openLog(t, s, key, clockFence()), wholeTurn(anna, "a1", "mine")...)
	shared := openLog(t, s, otherKey, clockFence())
	mustAppend(t, shared, wholeTurn(anna, "a1", "hers")...)
	mustAppend(t, shared, wholeTurn(berta, "b1", "ours")...)
	mustAppend(t, shared, wholeTurn(anna, "a2", "hers")...)
	command := withPerson(anna, entry("c1", sessions.KindCommand, sessions.Command{Name: "help", Route: []byte("{}")}))
	command.Cause = "c1"
	mustAppend(t, shared, command)
	mustAppend(t, shared, withPerson(anna, turnStarted("open")), withPerson(anna, said("open", "open", "not done yet")))
	mustAppend(t, shared, withPerson(berta, turnStarted("b2")), withPerson(berta, said("b2", "b2", "nor this")))
	mustAppend(t, openLog(t, s, "main:telegram:8", clockFence()), wholeTurn(berta, "b1", "private")...)

	got, err := s.ErasePerson(t.Context(), anna)
	wantErased(t, "the person", got, err, []string{key}, []string{otherKey}, 4+4+4+1+2)
	if got := turnsOf(readLog(t, s, otherKey)); !slices.Equal(got, []string{"b1", "b2"}) {
		t.Errorf("turns %v are left", got)
	}
	if n := len(readLog(t, s, "main:telegram:8")); n != 4 {
		t.Errorf("another's session has %d entries", n)
	}
	l := openLog(t, s, otherKey, clockFence())
	if l.Next() != shared.Next() {
		t.Errorf("it goes on at %d, not at %d", l.Next(), shared.Next())
	}
	if got := turnsOf(l.Entries()); !slices.Equal(got, []string{"b1", "b2"}) {
		t.Errorf("opened it has turns %v", got)
	}
	for _, cause := range []string{"a1", "a2", "c1", "open"} {
		wantSeen(t, l.Append(t.Context(), l.Next(), said("x", cause, "again")), cause, cause)
	}
	mustAppend(t, l, turnPublished("b1"))
	got, err = s.ErasePerson(t.Context(), anna)
	wantErased(t, "the person once more", got, err, nil, nil, 0)
	if _, err := s.ErasePerson(t.Context(), ""); err == nil {
		t.Error("nobody was erased")
	}
}

func testEraseApprover(t *testing.T, p place) {
	s := p.open()
	const another = "main:telegram:9"
	for _, key := range []string{key, another} {
		l := openLog(t, s, key, clockFence())
		mustAppend(t, l, waitingTurn(anna, "a1", "ask")...)
		mustAppend(t, l, approvedBy(berta, "a1", "ask"), entry("a1", sessions.KindTurnUnparked, nil), turnDone("a1"))
	}
	// Nobody but Anna has spoken in that session, so nothing of it is kept for Berta.
	got, err := s.ErasePerson(t.Context(), anna)
	wantErased(t, "whose turn was approved", got, err, []string{key, another}, nil, 2*7)

	l := openLog(t, s, otherKey, clockFence())
	mustAppend(t, l, waitingTurn(anna, "a1", "ask")...)
	mustAppend(t, l, approvedBy(berta, "a1", "ask"), entry("a1", sessions.KindTurnUnparked, nil), turnDone("a1"))
	mustAppend(t, l, wholeTurn(anna, "a2", "mine")...)
	denied := endedBy(berta, "a3", "denied", sessions.AskEnded{Ask: "denied", State: "answered", Answer: "deny", Reason: secret, Name: "Berta"})
	denied.Call = "c1"
	refused := entry("a3", sessions.KindToolResult, sessions.ToolResult{Content: []byte(`{"error":{"code":"permission_denied","message":"Denied by Berta: ` + secret + `"}}`), Code: "permission_denied"})
	refused.Call = "c1"
	mustAppend(t, l, waitingTurn(anna, "a3", "denied")...)
	mustAppend(t, l, denied, refused, entry("a3", sessions.KindTurnUnparked, nil), turnDone("a3"))
	// The turns stay, without the people who approved and denied in them, and without their words.
	before := len(readLog(t, s, otherKey))
	got, err = s.ErasePerson(t.Context(), berta)
	wantErased(t, "who had approved", got, err, nil, []string{otherKey}, 2)
	left := readLog(t, s, otherKey)
	if got := turnsOf(left); !slices.Equal(got, []string{"a1", "a2", "a3"}) || len(left) != before {
		t.Errorf("turns %v are left, %d of %d entries", got, len(left), before)
	}
	var decided []string
	for _, e := range left {
		if text := string(e.Data); e.Person == berta || strings.Contains(text, secret) && e.Kind != sessions.KindUser || strings.Contains(text, "Berta") {
			t.Errorf("it holds who decided: %+v %s", e, e.Data)
		}
		if e.Kind == sessions.KindAskEnded {
			ended, err := sessions.Decode[sessions.AskEnded](e)
			if err != nil {
				t.Fatal(err)
			}
			decided = append(decided, ended.Answer)
		}
	}
	if !slices.Equal(decided, []string{"approve", "deny"}) {
		t.Errorf("what was decided is %v", decided)
	}
	if alone, shared, err := s.(interface {
		SessionsOf(ctx context.Context, person string) (alone, shared []string, err error)
	}).SessionsOf(t.Context(), berta); err != nil || len(alone)+len(shared) > 0 {
		t.Errorf("she spoke in %v and %v, %v", alone, shared, err)
	}
}

func testEraseOnBehalf(t *testing.T, p place) {
	s := p.open()
	told := withPerson(anna, entry("n1", sessions.KindNotice, sessions.Notice{Code: "told", Quotes: []sessions.Quote{{Kind: "told", Person: anna, Text: secret}}}))
	told.Cause = "n1"
	for _, session := range []string{key, otherKey} {
		l := openLog(t, s, session, clockFence())
		mustAppend(t, l, wholeTurn(berta, "b1", "mine")...)
		mustAppend(t, l, told)
	}
	if _, err := s.EraseSession(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	got, err := s.ErasePerson(t.Context(), anna)
	wantErased(t, "on whose behalf it was said", got, err, nil, []string{otherKey}, 1)
	l := openLog(t, s, otherKey, clockFence())
	wantSeen(t, l.Append(t.Context(), l.Next(), said("x", "n1", "again")), "n1", "n1")
	told.Turn, told.Cause = "n2", "n2"
	mustAppend(t, l, told)
	got, err = s.ErasePerson(t.Context(), berta)
	wantErased(t, "to whom it was said", got, err, []string{otherKey}, nil, 5)
}

func testEraseUnknown(t *testing.T, p place) {
	s := p.open()
	l := openLog(t, s, otherKey, clockFence())
	mustAppend(t, l, wholeTurn(berta, "b1", "ours")...)
	mustAppend(t, l, withPerson(anna, turnStarted("a1")), withPerson(anna, said("a1", "a1", "hers")), entry("a1", "kind_of_tomorrow", map[string]string{"text": secret}))
	if got := l.Entries(); len(got) > 0 {
		t.Fatalf("a new log had %v", got)
	}
	if got := openLog(t, s, otherKey, clockFence()).Entries(); len(got) != 7 || got[6].Kind != "kind_of_tomorrow" {
		t.Errorf("opened it has %v", got)
	}
	got, err := s.ErasePerson(t.Context(), anna)
	wantErased(t, "the person", got, err, nil, []string{otherKey}, 3)
	old := time.Now().Add(time.Hour)
	mustAppend(t, openLog(t, s, otherKey, clockFence()), entry("b1", "kind_of_tomorrow", nil), turnPublished("b1"))
	got, err = s.EraseBefore(t.Context(), old)
	wantErased(t, "what is old", got, err, []string{otherKey}, nil, 6)
}

func testEraseUnderWork(t *testing.T, p place) {
	s := p.open()
	f := clockFence()
	l := openLog(t, s, otherKey, f)
	mustAppend(t, l, wholeTurn(anna, "a1", "hers")...)
	mustAppend(t, l, withPerson(berta, turnStarted("b1")), withPerson(berta, said("b1", "b1", "ours")))
	if _, err := s.ErasePerson(t.Context(), anna); err != nil {
		t.Fatal(err)
	}
	if err := l.Append(t.Context(), l.Next(), replied("b1", "what she said")); !errors.Is(err, sessions.ErrFenced) {
		t.Errorf("who has read it appends: %v", err)
	}
	l = openLog(t, s, otherKey, clockFence())
	mustAppend(t, l, replied("b1", "something else"), turnDone("b1"))
}

func testEraseSummary(t *testing.T, p place) {
	s := p.open()
	l := openLog(t, s, otherKey, clockFence())
	mustAppend(t, l, wholeTurn(berta, "b1", "ours")...)
	mustAppend(t, l, summary(4)) // like 5, which is only Berta's
	mustAppend(t, l, wholeTurn(anna, "a1", "hers")...)
	mustAppend(t, l, entry("s", sessions.KindSummary, sessions.Summary{Covers: 9, Text: "so far", Turn: "b1", Keep: []int64{8}}))
	mustAppend(t, l, wholeTurn(berta, "b2", "ours")...)
	if _, err := s.ErasePerson(t.Context(), anna); err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, e := range readLog(t, s, otherKey) {
		if e.Kind != sessions.KindSummary {
			continue
		}
		d, err := sessions.Decode[sessions.Summary](e)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, fmt.Sprint(e.N, d.Covers, d.Text, d.Turn, d.Keep))
	}
	if want := []string{"5 4so far[]", "10 9b1[8]"}; !slices.Equal(texts, want) {
		t.Errorf("the summaries are %q, want %q", texts, want)
	}
	if got := turnsOf(openLog(t, s, otherKey, clockFence()).Entries()); !slices.Equal(got, []string{"s", "b2"}) {
		t.Errorf("opened it has turns %v: what was covered must not come back", got)
	}
}

func testEraseBudget(t *testing.T, p place) {
	s := p.open()
	now := time.Now()
	for _, r := range []sessions.Reservation{
		{ID: "r1", Person: anna, Tokens: 10, Cap: 100, At: now},
		{ID: "r2", Person: anna, Tokens: 20, Cap: 100, At: now},
		{ID: "r3", Person: berta, Tokens: 40, Cap: 100, At: now},
	} {
		if err := s.Reserve(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.ErasePerson(t.Context(), anna); err != nil {
		t.Fatal(err)
	}
	if err := s.Settle(t.Context(), sessions.Reservation{ID: "r1", Person: anna}, 7); err != nil {
		t.Errorf("settling what she had reserved: %v", err)
	}
	for person, want := range map[string]int64{anna: 0, berta: 40} {
		if got, err := s.Spent(t.Context(), person, now); err != nil || got != want {
			t.Errorf("%s has spent %d, want %d: %v", person, got, want, err)
		}
	}
}
