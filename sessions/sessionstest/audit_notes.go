package sessionstest

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"parley/sessions"
)

// refusalOf returns the record of a message that was refused.
func refusalOf(rule, address, person, message string) sessions.AuditRecord {
	return sessions.AuditRecord{
		At: time.Now().UTC().Truncate(time.Microsecond), Kind: sessions.AuditRefusal, By: person, Result: rule, Address: address, Messages: []string{message},
	}
}

// mustAuditNotes stores audit records with AuditNotes, and fails the test on an error.
func mustAuditNotes(t testing.TB, s sessions.Auditor, records ...sessions.AuditRecord) {
	t.Helper()
	if err := s.AuditNotes(t.Context(), records); err != nil {
		t.Fatal(err)
	}
}

// auditOf returns the audit records that match a query.
func auditOf(t testing.TB, s sessions.Auditor, q sessions.AuditQuery) []sessions.AuditRecord {
	t.Helper()
	if q.Limit == 0 {
		q.Limit = 2 * sessions.MaxRefusals
	}
	records, err := s.AuditRecords(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return records
}

func testAuditNotes(t *testing.T, p place) {
	s := p.open()
	cost := int64(1234)
	turn := sessions.AuditRecord{
		At: time.Now().UTC().Truncate(time.Microsecond), Kind: sessions.AuditTurn, By: anna, Agent: "main", Session: key, Turn: "t\x001", Result: "failed", Detail: "timeout",
		Elapsed: 99, Used: &sessions.AuditUse{Model: "m", ModelCalls: 3, Calls: 2, Input: 100, Output: 10, Cost: &cost},
	}
	refusal := refusalOf("stranger", "telegram:7/1", "telegram:7\x00", "m\x001")
	mustAuditNotes(t, s, turn, refusal)
	mustAuditNotes(t, s)
	s = p.reopen(s)
	got := auditOf(t, s, sessions.AuditQuery{})
	if len(got) != 2 {
		t.Fatalf("got %+v", got)
	}
	turn.ID, refusal.ID, refusal.Count = got[0].ID, got[1].ID, 1
	if want := []sessions.AuditRecord{turn, refusal}; !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	mustAuditNotes(t, s, refusalOf("stranger", "telegram:77", "telegram:77", "m%2"))
	for q, want := range map[sessions.AuditQuery]int{
		{Message: "m\x001"}: 1, {Message: "m%2"}: 1, {Message: "m_2"}: 0, {Message: "m"}: 0, {Message: "%"}: 0,
		{Place: "telegram:7"}: 1, {Place: "telegram:77"}: 1, {Place: "telegram"}: 0, {Place: "telegram:7/1"}: 1,
	} {
		if got := auditOf(t, s, q); len(got) != want {
			t.Errorf("of %+v there are %+v", q, got)
		}
	}
}

func testAuditKeepsEndsOnce(t *testing.T, p place) {
	s := p.open()
	first := sessions.AuditRecord{At: time.Now(), Kind: sessions.AuditTurn, By: anna, Session: key, Turn: "t1", Result: "completed"}
	again, next := first, first
	again.MayBeRecorded, again.Result = true, "failed"
	next.MayBeRecorded, next.Turn = true, "t2"
	mustAuditNotes(t, s, first)
	mustAuditNotes(t, s, again, next)
	mustAuditNotes(t, s, next)
	got := auditOf(t, s, sessions.AuditQuery{})
	if len(got) != 2 || got[0].Turn != "t1" || got[0].Result != "completed" || got[1].Turn != "t2" {
		t.Errorf("got %+v", got)
	}
}

func testLateAuditNote(t *testing.T, p place) {
	s := p.open()
	ofTurn := func(turn, person string) sessions.AuditRecord {
		return sessions.AuditRecord{At: time.Now(), Kind: sessions.AuditTurn, By: person, Session: key, Turn: turn, Result: "completed"}
	}
	hers, his := entry("m1", sessions.KindUser, sessions.User{Text: "hers"}), entry("m2", sessions.KindUser, sessions.User{Text: "his"})
	hers.Cause, hers.Person, his.Cause, his.Person = "m1", anna, "m2", berta
	mustAppend(t, openLog(t, s, key, clockFence()), hers, turnDone("m1"), his, turnDone("m2"))
	if _, err := s.ErasePerson(t.Context(), anna); err != nil {
		t.Fatal(err)
	}
	mustAuditNotes(t, s, ofTurn("m1", anna), ofTurn("m2", berta))
	if got := auditOf(t, s, sessions.AuditQuery{}); len(got) != 2 || got[0].By != "" || got[1].By != berta {
		t.Errorf("in a session that others share there are %+v", got)
	}
	if _, err := s.EraseSession(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	mustAuditNotes(t, s, ofTurn("m2", berta))
	if got := auditOf(t, s, sessions.AuditQuery{Person: berta}); len(got) != 1 {
		t.Errorf("of an erased session there are %+v", got)
	}
}

func testAuditMergesRefusals(t *testing.T, p place) {
	s := p.open()
	mustAuditNotes(t, s, refusalOf("stranger", "telegram:7", "telegram:7", "m0"), refusalOf("stranger", "telegram:8", "telegram:8", "other"),
		refusalOf("full", "telegram:7", "telegram:7", "other rule"), refusalOf("stranger", "telegram:7", "telegram:7", "m1"))
	first := auditOf(t, s, sessions.AuditQuery{Kind: sessions.AuditRefusal})
	if len(first) != 3 || first[0].Count != 2 || !slices.Equal(first[0].Messages, []string{"m0", "m1"}) {
		t.Fatalf("got %+v", first)
	}
	for n := 2; n < 12; n++ {
		mustAuditNotes(t, s, refusalOf("stranger", "telegram:7", "telegram:7", fmt.Sprint("m", n)))
	}
	many := refusalOf("stranger", "telegram:7", "telegram:7", "m99")
	many.Count = 88
	mustAuditNotes(t, s, many)
	now := auditOf(t, s, sessions.AuditQuery{Kind: sessions.AuditRefusal})
	newest := now[len(now)-1]
	if len(now) != 3 || newest.ID <= first[2].ID || newest.Count != 100 || !slices.Equal(newest.Messages, []string{"m5", "m6", "m7", "m8", "m9", "m10", "m11", "m99"}) {
		t.Errorf("got %+v", now)
	}
}

func testAuditBoundsRefusals(t *testing.T, p place) {
	s := p.open()
	mustAuditNotes(t, s, refusalOf("stranger", "telegram:0", "telegram:0", "first"), refusalOf("full", "telegram:1", anna, "other rule"),
		refusalOf("stranger", "telegram-2:1", "telegram-2:1", "other channel"))
	var flood []sessions.AuditRecord
	for n := range sessions.MaxRefusals + 20 {
		flood = append(flood, refusalOf("stranger", fmt.Sprint("telegram:", 1000+n), fmt.Sprint("telegram:", 1000+n), "m"))
	}
	for part := range slices.Chunk(flood, 130) {
		mustAuditNotes(t, s, part...)
	}
	got := auditOf(t, s, sessions.AuditQuery{})
	if len(got) != sessions.MaxRefusals+2 || got[0].Messages[0] != "other rule" || got[1].Messages[0] != "other channel" || got[2].By != "telegram:1020" {
		t.Errorf("there are %d: %+v …", len(got), got[:min(3, len(got))])
	}
}

func testAuditForgetsRefusals(t *testing.T, p place) {
	s := p.open()
	openLog(t, s, key, clockFence())
	old, full := refusalOf("stranger", "telegram:9", "telegram:9", "old"), refusalOf("full", "telegram:1", berta, "full")
	old.At, full.Session = old.At.Add(-25*time.Hour), key
	mustAuditNotes(t, s, old, full, refusalOf("stranger", "telegram:7", "telegram:7", "hers"), refusalOf("not_mentioned", "telegram:-1", "", "nobody's"))
	left := func(when string, want ...string) {
		t.Helper()
		var got []string
		for _, r := range auditOf(t, s, sessions.AuditQuery{Kind: sessions.AuditRefusal}) {
			got = append(got, r.Messages...)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s there are %q, want %q", when, got, want)
		}
	}
	left("at first", "old", "full", "hers", "nobody's")
	if err := s.DropRefusals(t.Context(), time.Now().Add(-sessions.RefusalLifetime)); err != nil {
		t.Fatal(err)
	}
	left("after a day", "full", "hers", "nobody's")
	if _, err := s.ErasePerson(t.Context(), "telegram:7"); err != nil {
		t.Fatal(err)
	}
	left("without the person", "full", "nobody's")
	if _, err := s.EraseSession(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	left("without the session", "nobody's")
}

func testAuditQueries(t *testing.T, p place) {
	s := p.open()
	openLog(t, s, key, clockFence())
	openLog(t, s, otherKey, clockFence())
	early := auditRecordOf(key, anna, "early", "x")
	early.At = early.At.Add(-time.Hour)
	mustAudit(t, s, early, auditRecordOf(otherKey, anna, "hers", "x"), auditRecordOf(key, berta, "his", "x"), auditRecordOf(key, anna, "late", "x"))
	ids := auditOf(t, s, sessions.AuditQuery{})
	for _, c := range []struct {
		q    sessions.AuditQuery
		want []string
	}{
		{sessions.AuditQuery{Session: key}, []string{"early", "his", "late"}},
		{sessions.AuditQuery{Person: anna}, []string{"early", "hers", "late"}},
		{sessions.AuditQuery{Session: key, Person: anna, Since: time.Now().Add(-time.Minute)}, []string{"late"}},
		{sessions.AuditQuery{Newest: true, Limit: 2}, []string{"late", "his"}},
		{sessions.AuditQuery{Newest: true, Before: ids[2].ID}, []string{"hers", "early"}},
		{sessions.AuditQuery{After: ids[2].ID, Kind: sessions.AuditTool}, []string{"late"}},
		{sessions.AuditQuery{Kind: sessions.AuditTurn}, nil},
	} {
		var got []string
		for _, r := range auditOf(t, s, c.q) {
			got = append(got, r.Turn)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.q, got, c.want)
		}
	}
}
