package sessionstest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"parley/sessions"
)

func recentTests() []test {
	return []test{
		{"sessions are found by each of their properties, those that were used last first", testRecent},
		{"pages of recent sessions have each session once, in their order", testRecentPages},
		{"a session that is used again is the first", testRecentMoves},
		{"one page looks at a few thousand sessions at most", testRecentBounded},
		{"the sessions of a chat are listed in the order of their keys, page by page", testListIn},
	}
}

// keysOf returns the keys of sessions.
func keysOf(list []sessions.Info) (keys []string) {
	for _, info := range list {
		keys = append(keys, info.Key)
	}
	return keys
}

// wantRecent fails the test unless a query finds these sessions, in one page and in pages of two.
func wantRecent(t testing.TB, s sessions.Reader, q sessions.SessionQuery, want ...string) {
	t.Helper()
	for _, q.Limit = range []int{100, 2} {
		var got []string
		q.After = nil
		for {
			page, err := s.Recent(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			if len(page.Sessions) > q.Limit {
				t.Fatalf("%+v: a page of %d", q, len(page.Sessions))
			}
			got = append(got, keysOf(page.Sessions)...)
			if q.After = page.Next; q.After == nil {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%+v: %q, want %q", q, got, want)
		}
	}
}

func testRecent(t *testing.T, p place) {
	s := p.open()
	const old, chat, thread, other, poet = "main:telegram:1", "main:slack:C%2F1", "main:slack:C%2F1:t", "main:slack:C%2F1x", "poet:telegram:1"
	say := func(key, person, text string) {
		t.Helper()
		mustAppend(t, openLog(t, s, key, clockFence()), wholeTurn(person, fmt.Sprint("t", clockFence()), text)...)
	}
	say(old, anna, "How do I bake Bread?")
	middle := time.Now()
	for s := time.Now(); !time.Now().After(s.Add(2 * time.Microsecond)); { // times have whole microseconds
		continue
	}
	say(chat, berta, "the moon")
	say(thread, anna, "bread and butter")
	say(other, berta, "the sun")
	say(poet, anna, "a poem")
	for _, c := range []struct {
		q    sessions.SessionQuery
		want []string
	}{
		{sessions.SessionQuery{}, []string{poet, other, thread, chat, old}},
		{sessions.SessionQuery{Agent: "main"}, []string{other, thread, chat, old}},
		{sessions.SessionQuery{Agent: "nobody"}, nil},
		{sessions.SessionQuery{Channel: "telegram"}, []string{poet, old}},
		{sessions.SessionQuery{Channel: "telegram", Agent: "main"}, []string{old}},
		{sessions.SessionQuery{Channel: "slack", Chat: "C/1"}, []string{thread, chat}},
		{sessions.SessionQuery{Channel: "slack", Chat: "C/1", Agent: "poet"}, nil},
		{sessions.SessionQuery{Channel: "slack", Chat: "C/1", Person: anna}, []string{thread}},
		{sessions.SessionQuery{Person: anna}, []string{poet, thread, old}},
		{sessions.SessionQuery{Person: anna, Channel: "telegram"}, []string{poet, old}},
		{sessions.SessionQuery{Person: "telegram:9"}, nil},
		{sessions.SessionQuery{Words: "bread"}, []string{thread, old}},
		{sessions.SessionQuery{Words: " BREAD  butter"}, []string{thread}},
		{sessions.SessionQuery{Words: "Bread", Agent: "poet"}, nil},
		{sessions.SessionQuery{Keys: []string{old, thread, "main:telegram:none"}}, []string{thread, old}},
		{sessions.SessionQuery{Keys: []string{old, thread}, Person: berta}, nil},
		{sessions.SessionQuery{Keys: []string{old, thread}, Words: "how"}, []string{old}},
		{sessions.SessionQuery{Keys: []string{}}, nil},
		{sessions.SessionQuery{Since: middle}, []string{poet, other, thread, chat}},
		{sessions.SessionQuery{Since: middle, Person: anna, Agent: "main"}, []string{thread}},
		{sessions.SessionQuery{Since: time.Now().Add(time.Hour)}, nil},
	} {
		wantRecent(t, s, c.q, c.want...)
	}
	if page, err := s.Recent(t.Context(), sessions.SessionQuery{}); err != nil || len(page.Sessions) != 0 || page.Next != nil {
		t.Errorf("none asked for, got %+v, %v", page, err)
	}
}

func testRecentPages(t *testing.T, p place) {
	s := p.open()
	var want []string
	for i := range 60 {
		key := fmt.Sprintf("main:telegram:%d", i)
		mustAppend(t, openLog(t, s, key, clockFence()), wholeTurn(anna, "t", fmt.Sprint("the number ", i%2))...)
		want = append(want, key)
	}
	slices.Reverse(want)
	wantRecent(t, s, sessions.SessionQuery{}, want...)
	wantRecent(t, s, sessions.SessionQuery{Person: anna}, want...)
	var odd []string
	for i := 0; i < len(want); i += 2 {
		odd = append(odd, want[i])
	}
	wantRecent(t, s, sessions.SessionQuery{Words: "number 1"}, odd...)
	if _, err := s.ErasePerson(t.Context(), anna); err != nil {
		t.Fatal(err)
	}
	wantRecent(t, s, sessions.SessionQuery{})
}

func testRecentMoves(t *testing.T, p place) {
	s := p.open()
	first := openLog(t, s, "main:telegram:1", clockFence())
	mustAppend(t, first, wholeTurn(anna, "a1", "the sun")...)
	mustAppend(t, openLog(t, s, "main:telegram:2", clockFence()), wholeTurn(anna, "a1", "the moon")...)
	wantRecent(t, s, sessions.SessionQuery{Agent: "main"}, "main:telegram:2", "main:telegram:1")
	mustAppend(t, first, wholeTurn(anna, "a2", "again")...)
	wantRecent(t, s, sessions.SessionQuery{Agent: "main"}, "main:telegram:1", "main:telegram:2")
	s = p.reopen(s)
	wantRecent(t, s, sessions.SessionQuery{Channel: "telegram"}, "main:telegram:1", "main:telegram:2")
}

func testRecentBounded(t *testing.T, p place) {
	s := p.open()
	const writers, each = 40, 130
	say := func(key, text string) error {
		l, err := s.Open(t.Context(), key, 1)
		if err != nil {
			return err
		}
		return l.Append(t.Context(), l.Next(), said("t", "t", text))
	}
	if err := say("main:web:0", "what is looked for"); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for n := range each {
				if err := say(fmt.Sprintf("main:web:%d-%d", w, n), "something else"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	q := sessions.SessionQuery{Words: "looked for", Limit: 5}
	page, err := s.Recent(t.Context(), q)
	if err != nil || len(page.Sessions) != 0 || page.Next == nil {
		t.Fatalf("the first page is %+v, %v", page, err)
	}
	q.After = page.Next
	if page, err = s.Recent(t.Context(), q); err != nil || len(page.Sessions) != 1 || page.Sessions[0].Key != "main:web:0" || page.Next != nil {
		t.Errorf("the second page is %+v, %v", page, err)
	}
}

func testListIn(t *testing.T, p place) {
	s := p.open()
	var want []string
	for n := range 7 {
		for _, key := range []string{fmt.Sprintf("main:web:ci:%d", n), fmt.Sprintf("main:web:cix:%d", n), fmt.Sprintf("main:slack:ci:%d", n)} {
			mustAppend(t, openLog(t, s, key, 1), said("t", "t", "hello"))
		}
		want = append(want, fmt.Sprintf("main:web:ci:%d", n))
	}
	mustAppend(t, openLog(t, s, "a:web:ci", 1), said("t", "t", "hello"))
	want = append([]string{"a:web:ci"}, want...)
	var got []string
	for after := ""; ; {
		page, err := s.ListIn(t.Context(), "web", "ci", after, 3)
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, keysOf(page)...); len(page) < 3 {
			break
		}
		if after = page[2].Key; page[2].Title != "hello" {
			t.Errorf("it is %+v", page[2])
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("listed are %q, want %q", got, want)
	}
}
