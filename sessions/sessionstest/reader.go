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
	}
}

func testList(t *testing.T, p place) {
	s := p.open()
	var want []string
	for i := range 25 {
		want = append(want, fmt.Sprintf("main:telegram:%d", i), fmt.Sprintf("Main:a-b_c%%2F:%d:x", i))
	}
	for _, key := range want {
		appendAll(t, openLog(t, s, key, 1), replied("t", "x"))
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
	appendAll(t, l, replied("t", "a"), replied("t", "b"))
	appendAll(t, l, replied("t", "c"))
	list, err := s.List(t.Context(), "", 10)
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	i := list[0]
	if alone, err := s.Info(t.Context(), key); err != nil || alone != i {
		t.Errorf("alone it is %+v, %v", alone, err)
	}
	if i.Key != key || i.Entries != 3 {
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
	appendAll(t, l, entries...)
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
	// Who reads slowly, many times at once, keeps nobody from writing or reading.
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
			appendAll(t, openLog(t, s, key, 2), replied("t", "meanwhile"))
		}
	}
}

func testReadCovered(t *testing.T, p place) {
	s := p.open()
	entries := []sessions.Entry{said("t", "m", "hello"), replied("t", "hi"), summary(2), replied("t2", "later")}
	appendAll(t, openLog(t, s, key, 1), entries...)
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
	appendAll(t, openLog(t, s, key, 1), said("t", "m", "hello"), replied("t", "hi"))
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
	appendAll(t, l, replied("t", "a"))
	readLog(t, s, key)
	appendAll(t, l, replied("t", "b"))
}
