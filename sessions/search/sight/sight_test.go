package sight_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"parley/sessions/search/sight"
)

// A testChats is Facts in memory: the chats, and who is a member of which group.
type testChats struct {
	chats   map[sight.Place]sight.Chat
	members map[sight.Place][]string
	closed  []string // threads
	asked   map[string]int
	away    bool // whether the platforms don't answer
}

var errAway = errors.New("away")

func (w *testChats) Chat(_ context.Context, at sight.Place) (sight.Chat, error) {
	return w.chats[at], nil
}

func (w *testChats) IsIn(_ context.Context, at sight.Place, person string) (bool, error) {
	w.asked[at.Chat+" "+person]++
	if w.away {
		return true, errAway
	}
	return slices.Contains(w.members[at], person), nil
}

func (w *testChats) IsClosed(_ context.Context, _ sight.Place, thread string) (bool, error) {
	return slices.Contains(w.closed, thread), nil
}

func newWorld() *testChats {
	w := &testChats{chats: map[sight.Place]sight.Chat{}, members: map[sight.Place][]string{}, asked: map[string]int{}, closed: []string{"secret"}}
	for place, person := range map[string]string{"DA": "s:A", "DB": "s:B", "Dold": ""} {
		w.chats[sight.Place{Channel: "s", Chat: place}] = sight.Chat{Known: true, Person: person}
	}
	w.chats[sight.Place{Channel: "t", Chat: "1"}] = sight.Chat{Known: true, Person: "t:1"} // the other account of A
	for _, group := range []string{"G", "H", "I"} {
		w.chats[sight.Place{Channel: "s", Chat: group}] = sight.Chat{Known: true, Group: true}
	}
	w.members[sight.Place{Channel: "s", Chat: "G"}] = []string{"s:A", "s:B"}
	w.members[sight.Place{Channel: "s", Chat: "H"}] = []string{"s:A"}
	return w
}

func TestViews(t *testing.T) {
	a, b := []string{"s:A", "t:1"}, []string{"s:B"}
	all := []string{
		"main:s:DA", "main:s:DA:9", "main:s:DB", "main:t:1", "main:s:Dold", "main:s:gone", "ops:s:DA", "ops:s:G",
		"main:s:G", "main:s:G:1.1", "main:s:G:secret", "main:s:G::A", "main:s:G::B", "main:s:G:1.1:B",
		"main:s:H", "main:s:H::A", "main:s:I", "main:agent:123:x", "main:webhook:ci", "main:heartbeat:main:2026-01-01", "main:s", "",
	}
	for name, c := range map[string]struct {
		who  sight.Asker
		want []string
	}{
		"alone": {sight.Asker{Session: "main:s:DA", Private: true, Accounts: a},
			[]string{"main:s:DA", "main:s:DA:9", "main:t:1", "main:s:G", "main:s:G:1.1", "main:s:G::A", "main:s:H", "main:s:H::A"}},
		"alone, on another channel": {sight.Asker{Session: "main:t:1", Private: true, Accounts: []string{"t:1", "s:A"}},
			[]string{"main:s:DA", "main:s:DA:9", "main:t:1", "main:s:G", "main:s:G:1.1", "main:s:G::A", "main:s:H", "main:s:H::A"}},
		"not linked": {sight.Asker{Session: "main:t:1", Private: true, Accounts: []string{"t:1"}}, []string{"main:t:1"}},
		"in a group": {sight.Asker{Session: "main:s:G:1.1", Accounts: a},
			[]string{"main:s:G", "main:s:G:1.1", "main:s:G::A"}},
		"another in the group": {sight.Asker{Session: "main:s:G", Accounts: b}, []string{"main:s:G", "main:s:G:1.1", "main:s:G::B", "main:s:G:1.1:B"}},
		"in a closed thread":   {sight.Asker{Session: "main:s:G:secret", Accounts: b}, []string{"main:s:G", "main:s:G:1.1", "main:s:G:secret", "main:s:G::B", "main:s:G:1.1:B"}},
		"in their own part of a group": {sight.Asker{Session: "main:s:G::B", Accounts: b},
			[]string{"main:s:G", "main:s:G:1.1", "main:s:G::B", "main:s:G:1.1:B"}},
		"a group that calls itself private": {sight.Asker{Session: "main:s:G", Private: true, Accounts: b}, []string{"main:s:G", "main:s:G:1.1", "main:s:G::B", "main:s:G:1.1:B"}},
		"somebody in another's chat":        {sight.Asker{Session: "main:s:DA", Private: true, Accounts: b}, []string{"main:s:DA"}},
		"a chat of which nobody is known":   {sight.Asker{Session: "main:s:Dold", Private: true, Accounts: b}, []string{"main:s:DB", "main:s:Dold", "main:s:G", "main:s:G:1.1", "main:s:G::B", "main:s:G:1.1:B"}},
		"a private chat with others":        {sight.Asker{Session: "main:s:DA", Accounts: a}, []string{"main:s:DA"}},
		"a sub-agent":                       {sight.Asker{Session: "main:agent:123:x", Private: true, Accounts: a}, []string{"main:agent:123:x"}},
		"a webhook":                         {sight.Asker{Session: "main:webhook:ci", Accounts: []string{"webhook:ci"}}, []string{"main:webhook:ci"}},
		"no session":                        {sight.Asker{Session: "", Private: true, Accounts: a}, []string{""}},
		"another agent":                     {sight.Asker{Session: "ops:s:DA", Private: true, Accounts: a}, []string{"ops:s:DA", "ops:s:G"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			got, err := sight.ViewOf(t.Context(), w, c.who, all)
			if err != nil || !slices.Equal(got.Sessions, c.want) || got.Unknown {
				t.Errorf("sees %q (%+v, %v)\nwant %q", got.Sessions, got.Unknown, err, c.want)
			}
			for what, n := range w.asked {
				if n > 1 {
					t.Errorf("the platform is asked %d times about %s", n, what)
				}
			}
		})
	}
}

func TestUnknownChatsAreHidden(t *testing.T) {
	w := newWorld()
	w.away = true
	who := sight.Asker{Session: "main:s:DA", Private: true, Accounts: []string{"s:A"}}
	got, err := sight.ViewOf(t.Context(), w, who, []string{"main:s:G", "main:s:DA"})
	if err != nil || !got.Unknown || !slices.Equal(got.Sessions, []string{"main:s:DA"}) {
		t.Errorf("sees %+v, %v", got, err)
	}
	w = newWorld()
	var many []string
	for i := range 3 * sight.MaxAskedGroups {
		at := sight.Place{Channel: "s", Chat: fmt.Sprint("X", i)}
		w.chats[at], w.members[at] = sight.Chat{Known: true, Group: true}, []string{"s:A"}
		many = append(many, "main:s:"+at.Chat, "main:s:"+at.Chat+":1")
	}
	got, err = sight.ViewOf(t.Context(), w, who, many)
	if err != nil || !got.Unknown || len(got.Sessions) != 2*sight.MaxAskedGroups || len(w.asked) != sight.MaxAskedGroups {
		t.Errorf("of many groups sees %d, asked %d, %v", len(got.Sessions), len(w.asked), err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := sight.ViewOf(gone, w, who, many); !errors.Is(err, context.Canceled) || len(got.Sessions) > 0 {
		t.Errorf("whoever has gone sees %+v, %v", got, err)
	}
}
