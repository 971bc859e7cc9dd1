package sessionstest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/sessions"
)

func auditTests() []test {
	return []test{
		{"records come back as they were kept, in order and in pages", testAuditKeeps},
		{"records outlive a restart, and old ones are dropped", testAuditDropsOld},
		{"records that are kept soon are there once something is appended", testAuditSoon},
		{"an erased session's records lose their arguments", testAuditOfSession},
		{"a person's records lose them and the person", testAuditOfPerson},
		{"what is old leaves the records", testAuditOfAge},
		{"arguments of a session that is gone are not kept", testLateAuditRecord},
		{"nothing that was erased is left of records in any file", testAuditTraces},
		{"turns and refusals come back as they were noted", testAuditNotes},
		{"the end of a turn is kept once", testAuditKeepsEndsOnce},
		{"a note that comes after an erasure names nobody", testLateAuditNote},
		{"what one person is refused at one address is one record", testAuditMergesRefusals},
		{"a flood of refusals takes no place but its own", testAuditBoundsRefusals},
		{"refusals leave after a day, with their person, and with their session", testAuditForgetsRefusals},
		{"records are found by session, person and time, from either end", testAuditQueries},
	}
}

// auditRecordOf returns an audit record of a tool call.
func auditRecordOf(session, person, turn, arguments string) sessions.AuditRecord {
	raw, err := json.Marshal(map[string]string{"command": arguments})
	if err != nil {
		panic(err) // a text can be encoded
	}
	return sessions.AuditRecord{
		At: time.Now().UTC().Truncate(time.Microsecond), Kind: sessions.AuditTool, By: person, Agent: "main", Session: session, Turn: turn,
		Call: "c1", Tool: "exec_shell", Arguments: raw, Verdict: "allow", Result: "ok",
		ExitCode: new(int), Bytes: 12, Elapsed: 34,
	}
}

// mustAudit stores audit records, and fails the test on an error.
func mustAudit(t testing.TB, s sessions.Auditor, records ...sessions.AuditRecord) {
	t.Helper()
	for _, r := range records {
		if err := s.Audit(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
}

// wantAudit fails the test unless the store has exactly these audit records, each written as
// text without its id.
func wantAudit(t testing.TB, s sessions.Auditor, want ...string) {
	t.Helper()
	records, err := s.AuditRecords(t.Context(), sessions.AuditQuery{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range records {
		got = append(got, fmt.Sprintf("%s %s %s %s", r.By, r.Turn, r.Arguments, r.Detail))
	}
	if !slices.Equal(got, want) {
		t.Errorf("the records are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func testAuditKeeps(t *testing.T, p place) {
	s := p.open()
	openLog(t, s, key, clockFence())
	full := auditRecordOf(key, anna, "t1", "a\x00b \U0001F600")
	*full.ExitCode = 137
	bare := sessions.AuditRecord{At: full.At.Add(time.Second), Kind: sessions.AuditPairing, By: "token:ci", Result: "admitted", Detail: anna}
	mustAudit(t, s, full, bare, full)
	all, err := s.AuditRecords(t.Context(), sessions.AuditQuery{Limit: 10})
	if err != nil || len(all) != 3 || all[0].ID >= all[1].ID || all[1].ID >= all[2].ID {
		t.Fatalf("got %+v, %v", all, err)
	}
	for i, want := range []sessions.AuditRecord{full, bare} {
		want.ID = all[i].ID
		got, err := json.Marshal(all[i])
		if err != nil {
			t.Fatal(err)
		}
		if want, err := json.Marshal(want); err != nil || string(got) != string(want) {
			t.Errorf("record %d is\n%s\nwant\n%s, %v", i, got, want, err)
		}
	}
	if page, err := s.AuditRecords(t.Context(), sessions.AuditQuery{Kind: sessions.AuditTool, After: all[0].ID, Limit: 1}); err != nil || len(page) != 1 || page[0].ID != all[2].ID {
		t.Errorf("the page of a kind is %+v, %v", page, err)
	}
	if page, err := s.AuditRecords(t.Context(), sessions.AuditQuery{Kind: "other", Limit: 10}); err != nil || len(page) != 0 {
		t.Errorf("another kind has %+v, %v", page, err)
	}
}

func testAuditDropsOld(t *testing.T, p place) {
	s := p.open()
	openLog(t, s, key, clockFence())
	old := auditRecordOf(key, anna, "old", "x")
	old.At = old.At.Add(-48 * time.Hour)
	mustAudit(t, s, old, auditRecordOf(key, anna, "new", "x"))
	s = p.reopen(s)
	if n, err := s.DropAudit(t.Context(), time.Now().Add(-24*time.Hour)); err != nil || n != 1 {
		t.Errorf("dropped %d, %v, want 1", n, err)
	}
	wantAudit(t, s, anna+` new {"command":"x"} `)
}

func testAuditSoon(t *testing.T, p place) {
	s := p.open()
	soon, ok := s.(sessions.SoonAuditor)
	if !ok {
		t.Skip("the store waits for each record")
	}
	l := openLog(t, s, key, clockFence())
	for _, turn := range []string{"t1", "t2"} {
		if err := soon.AuditSoon(t.Context(), auditRecordOf(key, anna, turn, "x")); err != nil {
			t.Fatal(err)
		}
	}
	mustAppend(t, l, wholeTurn(anna, "t2", "x")...)
	wantAudit(t, s, anna+` t1 {"command":"x"} `, anna+` t2 {"command":"x"} `)
	if err := soon.AuditSoon(t.Context(), auditRecordOf(key, anna, "t3", "x")); err != nil {
		t.Fatal(err)
	}
	wantAudit(t, p.reopen(s), anna+` t1 {"command":"x"} `, anna+` t2 {"command":"x"} `, anna+` t3 {"command":"x"} `)
}

func testAuditOfSession(t *testing.T, p place) {
	s := p.open()
	mustAppend(t, openLog(t, s, key, clockFence()), wholeTurn(anna, "t1", "x")...)
	openLog(t, s, otherKey, clockFence())
	mustAudit(t, s, auditRecordOf(key, anna, "t1", secret), auditRecordOf(otherKey, anna, "t2", "y"))
	if _, err := s.EraseSession(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	wantAudit(t, s, anna+" t1  ", anna+` t2 {"command":"y"} `)
}

func testAuditOfPerson(t *testing.T, p place) {
	s := p.open()
	shared := openLog(t, s, otherKey, clockFence())
	mustAppend(t, shared, wholeTurn(anna, "a1", "x")...)
	mustAppend(t, shared, wholeTurn(berta, "b1", "x")...)
	mustAppend(t, openLog(t, s, key, clockFence()), wholeTurn(anna, "a2", "x")...)
	mustAudit(t, s, auditRecordOf(otherKey, anna, "a1", secret), auditRecordOf(otherKey, berta, "b1", "hers"), auditRecordOf(key, anna, "a2", secret), auditRecordOf("main:telegram:9", anna, "a3", secret),
		sessions.AuditRecord{At: time.Now(), Kind: sessions.AuditPairing, By: "token:owner", Result: "admitted", Detail: anna})
	if _, err := s.ErasePerson(t.Context(), anna); err != nil {
		t.Fatal(err)
	}
	wantAudit(t, s, " a1  ", berta+` b1 {"command":"hers"} `, " a2  ", " a3  ", "token:owner   ")
}

func testAuditOfAge(t *testing.T, p place) {
	s := p.open()
	openLog(t, s, key, clockFence())
	old := auditRecordOf(key, anna, "old", secret)
	old.At = old.At.Add(-48 * time.Hour)
	mustAudit(t, s, old, auditRecordOf(key, anna, "new", "x"))
	if _, err := s.EraseBefore(t.Context(), time.Now().Add(-24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	wantAudit(t, s, anna+` new {"command":"x"} `)
}

func testLateAuditRecord(t *testing.T, p place) {
	s := p.open()
	mustAppend(t, openLog(t, s, key, clockFence()), wholeTurn(anna, "t1", "x")...)
	if _, err := s.EraseSession(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	mustAudit(t, s, auditRecordOf(key, anna, "t1", secret))
	wantAudit(t, s, anna+" t1  ")
}

func testAuditTraces(t *testing.T, p place) {
	if p.harness.Files == nil {
		t.Skip("the files are a server's")
	}
	s := p.open()
	for i := range 8 {
		session := fmt.Sprintf("main:telegram:%d", i)
		mustAppend(t, openLog(t, s, session, clockFence()), wholeTurn(anna, "t", "x")...)
		for n := range 20 {
			mustAudit(t, s, auditRecordOf(session, anna, "t", strings.Repeat(secret, 1+n)))
		}
	}
	if p.countInFiles(secret) == 0 {
		t.Fatal("the files do not hold the arguments: the test cannot fail")
	}
	if _, err := s.ErasePerson(t.Context(), anna); err != nil {
		t.Fatal(err)
	}
	if n := p.countInFiles(secret); n != 0 {
		t.Errorf("%d traces are left", n)
	}
}
