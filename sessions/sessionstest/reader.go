package sessionstest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"parley/sessions"
)

func readerTests() []test {
	return []test{
		{"sessions are listed in the order of their keys, page by page", testList},
		{"a listed session tells its length and its times", testInfo},
		{"reading begins where asked, and holds nothing up", testReadFrom},
		{"reading yields what summaries cover", testReadCovered},
		{"what is not there is not found", testNotFound},
		{"a reader does not raise the fence", testReaderIsNoHolder},
		{"the sessions of a place are found, and which of them has a message", testFinder},
		{"turns that have not ended are told with the calls that run", testOpenTurns},
	}
}

func testList(t *testing.T, p place) {
	s := p.open()
	var want []string
	for i := range 25 {
		want = append(want, fmt.Sprintf("main:telegram:%d", i), fmt.Sprintf("Main:a-b_c%%2F:%d:x", i))
	}
	for _, key := range want {
		mustAppend(t, openLog(t, s, key, 1), replied("t", "x"))
	}
	slices.Sort(want)
	for _, limit := range []int{1, 7, 50, 1000} {
		var got []string
		for after := ""; ; {
			page, err := s.List(t.Context(), after, limit)
			if err != nil {
				t.Fatal(err)
			}
			if len(page) > limit {
				t.Fatalf("%d sessions, asked for %d", len(page), limit)
			}
			if len(page) == 0 {
				break
			}
			for _, i := range page {
				got = append(got, i.Key)
			}
			after = got[len(got)-1]
		}
		if !slices.Equal(got, want) {
			t.Errorf("in pages of %d: %v, want %v", limit, got, want)
		}
	}
	if page, err := s.List(t.Context(), "", 0); err != nil || len(page) != 0 {
		t.Errorf("none asked for, got %d, %v", len(page), err)
	}
}

func testInfo(t *testing.T, p place) {
	s := p.open()
	before := time.Now().Add(-time.Millisecond)
	l := openLog(t, s, key, 1)
	opened := time.Now()
	mustAppend(t, l, replied("t", "a"), replied("t", "b"))
	mustAppend(t, l, replied("t", "c"))
	list, err := s.List(t.Context(), "", 10)
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	i := list[0]
	if alone, err := s.Info(t.Context(), key); err != nil || alone != i {
		t.Errorf("alone it is %+v, %v", alone, err)
	}
	if i.Key != key || i.LastEntry != 3 {
		t.Errorf("%+v", i)
	}
	if i.Created.Before(before) || i.Created.After(opened) || i.Updated.Before(i.Created) || i.Updated.After(time.Now()) {
		t.Errorf("created %s, updated %s", i.Created, i.Updated)
	}
}

func testReadFrom(t *testing.T, p place) {
	s := p.open()
	l := openLog(t, s, key, 1)
	var entries []sessions.Entry
	for i := range 350 {
		entries = append(entries, replied("t", fmt.Sprint(i)))
	}
	mustAppend(t, l, entries...)
	for _, from := range []int64{-1, 0, 1, 2, 100, 101, 349, 350, 351, 9999} {
		var got []sessions.Entry
		for e, err := range s.Read(t.Context(), key, from) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, e)
		}
		wantSame(t, fmt.Sprintf("the log from %d on", from), got, entries[min(max(from, 1), 351)-1:])
	}
	// A slow reader, even many times at once, keeps nobody from writing or reading.
	var nest func(depth int)
	nest = func(depth int) {
		for e, err := range s.Read(t.Context(), key, 1) {
			if err != nil {
				t.Fatal(err)
			}
			if e.N == 3 && depth > 0 {
				nest(depth - 1)
			}
			if e.N == 5 {
				break
			}
		}
	}
	nest(30)
	for e, err := range s.Read(t.Context(), key, 1) {
		if err != nil {
			t.Fatal(err)
		}
		if e.N == 1 {
			mustAppend(t, openLog(t, s, key, 2), replied("t", "meanwhile"))
		}
	}
}

func testReadCovered(t *testing.T, p place) {
	s := p.open()
	entries := []sessions.Entry{said("t", "m", "hello"), replied("t", "hi"), summary(2), replied("t2", "later")}
	mustAppend(t, openLog(t, s, key, 1), entries...)
	wantLog(t, s, key, entries)
	found, err := s.Find(t.Context(), key, "m")
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, "what was found", []sessions.Entry{found}, entries[:1])
}

func testNotFound(t *testing.T, p place) {
	s := p.open()
	if _, err := s.Info(t.Context(), "main:telegram:nobody"); !errors.Is(err, sessions.ErrNotFound) {
		t.Errorf("a session that is not there is told of with %v", err)
	}
	mustAppend(t, openLog(t, s, key, 1), said("t", "m", "hello"), replied("t", "hi"))
	for _, other := range []string{"main:telegram:43", "", "no key\x00"} {
		count := 0
		for _, err := range s.Read(t.Context(), other, 1) {
			count++
			if !errors.Is(err, sessions.ErrNotFound) {
				t.Errorf("read %q: %v", other, err)
			}
		}
		if count != 1 {
			t.Errorf("reading %q yielded %d times", other, count)
		}
		if _, err := s.Find(t.Context(), other, "m"); !errors.Is(err, sessions.ErrNotFound) {
			t.Errorf("find in %q: %v", other, err)
		}
	}
	for _, cause := range []string{"m2", "", "M", "m\x00"} {
		if _, err := s.Find(t.Context(), key, cause); !errors.Is(err, sessions.ErrNotFound) {
			t.Errorf("find %q: %v", cause, err)
		}
	}
	if list, err := s.List(t.Context(), "", 10); err != nil || len(list) != 1 {
		t.Errorf("looking has made sessions: %v, %v", list, err)
	}
}

func testReaderIsNoHolder(t *testing.T, p place) {
	s := p.open()
	l := openLog(t, s, key, 1)
	mustAppend(t, l, replied("t", "a"))
	readLog(t, s, key)
	mustAppend(t, l, replied("t", "b"))
}

func testOpenTurns(t *testing.T, p place) {
	s := p.open()
	open := func() []sessions.OpenTurn {
		t.Helper()
		found, err := s.OpenTurns(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	called := func(kind sessions.Kind, call string, data any) sessions.Entry {
		e := entry("t2", kind, data)
		e.Call = call
		return e
	}
	if found := open(); len(found) != 0 {
		t.Errorf("of no session: %+v", found)
	}
	l := openLog(t, s, key, 1)
	mustAppend(t, l, wholeTurn("telegram:7", "t1", "hello")...)
	begun := entry("t2", sessions.KindTurnStarted, sessions.TurnStarted{Route: []byte(`{}`), Agent: "ops"})
	begun.Person = "telegram:8"
	mustAppend(t, l, begun, said("t2", "t2", "do it"),
		called(sessions.KindToolUse, "c1", sessions.ToolUse{Name: "exec_shell", Args: []byte(`{}`)}),
		called(sessions.KindToolUse, "c2", sessions.ToolUse{Name: "web_fetch", Args: []byte(`{}`)}),
		called(sessions.KindToolUse, "c3", sessions.ToolUse{Name: "glob", Args: []byte(`{}`)}))
	if found := open(); len(found) != 1 || found[0].Turn != "t2" || found[0].Person != "telegram:8" || found[0].Agent != "ops" || found[0].Session != key ||
		time.Since(found[0].Started) > time.Hour || len(found[0].Calls) != 0 {
		t.Errorf("before its calls begin it is %+v", found)
	}
	for _, call := range []string{"c1", "c2", "c1"} { // one of the calls is begun again
		mustAppend(t, l, called(sessions.KindToolStarted, call, sessions.ToolStarted{Attempt: 1}))
	}
	mustAppend(t, l, called(sessions.KindToolResult, "c2", sessions.ToolResult{Content: []byte(`"x"`)}))
	if found := open(); len(found) != 1 || len(found[0].Calls) != 1 || found[0].Calls[0].Call != "c1" || found[0].Calls[0].Tool != "exec_shell" ||
		time.Since(found[0].Calls[0].Since) > time.Hour || found[0].Parked {
		t.Errorf("with one call that runs it is %+v", found)
	}
	mustAppend(t, l, entry("t2", sessions.KindTurnParked, sessions.TurnParked{}))
	mustAppend(t, l, turnStarted("t3"), said("t3", "t3", "meanwhile"))
	if found := open(); len(found) != 2 || !found[0].Parked || found[1].Turn != "t3" || found[1].Parked {
		t.Errorf("while it waits they are %+v", found)
	}
	mustAppend(t, l, entry("t2", sessions.KindTurnUnparked, nil), turnDone("t3", "r3"), turnDone("t2", "r2"))
	if found := open(); len(found) != 0 {
		t.Errorf("after their ends: %+v", found)
	}
}

func testFinder(t *testing.T, p place) {
	s := p.open()
	const at = "main:slack:C1"
	for _, key := range []string{at, at + ":1.5", at + ":2.5", at + "2", "main:slack:C", "ops:slack:C1"} {
		mustAppend(t, openLog(t, s, key, 1), said("m"+key, "m"+key, "hello"))
	}
	for cause, want := range map[string]string{"m" + at: at, "m" + at + ":2.5": at + ":2.5", "m" + at + "2": "", "mops:slack:C1": "", "": ""} {
		key, err := s.FindIn(t.Context(), at, cause)
		if key != want || (want == "") != errors.Is(err, sessions.ErrNotFound) {
			t.Errorf("message %q is in %q, %v; want %q", cause, key, err, want)
		}
	}
	if list, err := s.RecentIn(t.Context(), at, 2); err != nil || len(list) != 2 || list[0].Key != at+":2.5" || list[1].Key != at+":1.5" {
		t.Errorf("the last two are %+v, %v", list, err)
	}
	if list, err := s.RecentIn(t.Context(), at, 9); err != nil || len(list) != 3 {
		t.Errorf("all of them are %+v, %v", list, err)
	}
}
