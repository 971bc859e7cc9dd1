package sessions_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"parley/bus"
	"parley/sessions"
)

func TestKey(t *testing.T) {
	for _, tt := range []struct{ agent, channel, chat, thread, want string }{
		{"main", "telegram", "42", "", "main:telegram:42"},
		{"main", "telegram", "-100123", "7", "main:telegram:-100123:7"},
		{"main", "slack", "C1", "1700000000.000100", "main:slack:C1:1700000000.000100"},
		{"main", "web", "a b/c:d%", "", "main:web:a%20b%2Fc%3Ad%25"},
		{"main", "web", "..", ".", "main:web:%2E%2E:%2E"},
		{"main", "web", "...", "é", "main:web:...:%C3%A9"},
		{"main", "web", "\x00\xff", "", "main:web:%00%FF"},
		{"main", "x@y", "A_z-9", "", "main:x@y:A_z-9"},
	} {
		got, err := sessions.Key(tt.agent, tt.channel, tt.chat, tt.thread)
		if err != nil || got != tt.want {
			t.Errorf("Key(%q, %q, %q, %q) = %q, %v, want %q", tt.agent, tt.channel, tt.chat, tt.thread, got, err, tt.want)
		}
	}
}

func TestPersonalKey(t *testing.T) {
	for _, tt := range []struct{ chat, thread, user, want string }{
		{"C1", "17.3", "U1", "main:slack:C1:17.3:U1"},
		{"C1", "", "U1", "main:slack:C1::U1"},
		{"C1", "", "a:b", "main:slack:C1::a%3Ab"},
	} {
		if got, err := sessions.PersonalKey("main", "slack", tt.chat, tt.thread, tt.user); err != nil || got != tt.want {
			t.Errorf("PersonalKey(%q) = %q, %v", tt, got, err)
		}
	}
	for _, tt := range [][3]string{{"C1", "", ""}, {"", "", "U1"}, {"C1", strings.Repeat("x", sessions.MaxKey), "U1"}} {
		if key, err := sessions.PersonalKey("main", "slack", tt[0], tt[1], tt[2]); !errors.Is(err, sessions.ErrInvalidKey) {
			t.Errorf("PersonalKey(%q) = %q, %v", tt, key, err)
		}
	}
}

// ParseKey returns the parts that a key was made from.
func TestParseKey(t *testing.T) {
	for _, want := range []sessions.KeyParts{
		{Agent: "main", Channel: "web", Chat: "a b/c:d%"},
		{Agent: "ops", Channel: "slack", Chat: "C1", Thread: "17.3"},
		{Agent: "main", Channel: "slack", Chat: "..", User: "a:b"},
		{Agent: "main", Channel: "slack", Chat: "C1", Thread: "17.3", User: "U1"},
	} {
		key, err := sessions.Key(want.Agent, want.Channel, want.Chat, want.Thread)
		if want.User != "" {
			key, err = sessions.PersonalKey(want.Agent, want.Channel, want.Chat, want.Thread, want.User)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got, err := sessions.ParseKey(key); err != nil || got != want || sessions.AgentOf(key) != want.Agent {
			t.Errorf("ParseKey(%q) = %+v, %v, want %+v; AgentOf gives %q", key, got, err, want, sessions.AgentOf(key))
		}
	}
	for _, key := range []string{"", "main", "main:web", "main:web:a b", "main:web:1:2:3:4"} {
		if got, err := sessions.ParseKey(key); !errors.Is(err, sessions.ErrInvalidKey) {
			t.Errorf("ParseKey(%q) = %+v, %v", key, got, err)
		}
	}
}

func TestKeyRefuses(t *testing.T) {
	long := strings.Repeat("x", sessions.MaxKey-len("main:web:"))
	if _, err := sessions.Key("main", "web", long, ""); err != nil {
		t.Errorf("a key of %d bytes: %v", sessions.MaxKey, err)
	}
	for _, tt := range [][4]string{
		{"", "web", "1", ""}, {"main", "", "1", ""}, {"main", "web", "", ""}, {"main", "web", "", "1"},
		{"main", "web", long + "x", ""}, {"main", "web", strings.Repeat("é", 50), ""},
	} {
		if key, err := sessions.Key(tt[0], tt[1], tt[2], tt[3]); !errors.Is(err, sessions.ErrInvalidKey) {
			t.Errorf("Key(%q) = %q, %v", tt, key, err)
		}
	}
}

func TestCheckKey(t *testing.T) {
	for _, key := range []string{
		"", "main", "main:web", "main:web:", ":web:1", "main::1", "main:web:1:", "main:web:1:2:", "main:web:1::", "main:web:::3", "main::1::3", "main:web:1:2:3:4",
		"main:web:..", "main:.:1", "main:web:a/b", `main:web:a\b`, "main:web:a b", "main:web:é", "main:web:\x00", "main:web:a\n",
	} {
		if err := sessions.CheckKey(key); !errors.Is(err, sessions.ErrInvalidKey) {
			t.Errorf("CheckKey(%q) = %v", key, err)
		}
	}
}

// Keys name sessions and folders: no two places have the same key, and no key leads out of a folder.
func FuzzKey(f *testing.F) {
	f.Add("main", "telegram", "42", "", "main", "telegram", "4", "2")
	f.Add("a", "b", "c:d", "", "a", "b", "c", "d")
	f.Add("a", "b", "%3A", "", "a", "b", ":", "")
	f.Add(".", "..", "%2E", "/", "%2E", "%2E%2E", ".", "\x00")
	f.Add("\xff", "é", "e\u0301", "", "\xfe", "é", "é", " ")
	f.Fuzz(func(t *testing.T, a, b, c, d, a2, b2, c2, d2 string) {
		one, err1 := sessions.Key(a, b, c, d)
		two, err2 := sessions.Key(a2, b2, c2, d2)
		if same := a == a2 && b == b2 && c == c2 && d == d2; same != (one == two) {
			t.Errorf("%q and %q, the same: %v", one, two, same)
		}
		for key, err := range map[string]error{one: err1, two: err2} {
			if (err == nil) != (sessions.CheckKey(key) == nil) {
				t.Errorf("Key gives %q, %v and CheckKey %v", key, err, sessions.CheckKey(key))
			}
			for part := range strings.SplitSeq(key, ":") {
				if part == "." || part == ".." || strings.ContainsAny(part, "/\\\x00") {
					t.Errorf("%q has the part %q", key, part)
				}
			}
		}
		whole := a != "" && b != "" && c != ""
		if whole && len(one) <= sessions.MaxKey && err1 != nil {
			t.Errorf("%q is refused: %v", one, err1)
		}
		if (!whole || len(one) > sessions.MaxKey) && err1 == nil {
			t.Errorf("%q is accepted", one)
		}
	})
}

// While a turn runs, its process must have the same data in memory that another process would read from the
// log.
func TestDecodeOfANewEntryAndOfItsDataAreEqual(t *testing.T) {
	cost := int64(12)
	for kind, data := range map[sessions.Kind]any{
		sessions.KindTurnStarted: sessions.TurnStarted{Route: []byte(`{"chat":"c"}`), Agent: "main"},
		sessions.KindUser: sessions.User{
			Name: "Ada", Text: "a<b \x00 \xff", Sent: time.Unix(1, 0).UTC(), Quotes: []sessions.Quote{{Kind: "reply", Text: "\ufffd"}},
		},
		sessions.KindUsage:    sessions.Usage{Model: "m", Input: 1, Cost: &cost},
		sessions.KindTurnDone: sessions.TurnDone{State: sessions.TurnCompleted, Outbound: []sessions.Reply{{ID: "r", Text: "x", Files: []byte(`[1]`)}}},
	} {
		e, err := sessions.NewEntry("t1", kind, data)
		if err != nil {
			t.Fatal(err)
		}
		read := sessions.Entry{Turn: e.Turn, Kind: kind, Data: e.Data}
		var got, want any
		switch data.(type) {
		case sessions.TurnStarted:
			got, want = decodeMadeAndRead[sessions.TurnStarted](t, e, read)
		case sessions.User:
			got, want = decodeMadeAndRead[sessions.User](t, e, read)
		case sessions.Usage:
			got, want = decodeMadeAndRead[sessions.Usage](t, e, read)
		case sessions.TurnDone:
			got, want = decodeMadeAndRead[sessions.TurnDone](t, e, read)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v of a new entry, %+v of the one that was read", kind, got, want)
		}
	}
}

func decodeMadeAndRead[T any](t *testing.T, made, read sessions.Entry) (of, from any) {
	t.Helper()
	a, err := sessions.Decode[T](made)
	b, err2 := sessions.Decode[T](read)
	if err != nil || err2 != nil {
		t.Error(err, err2)
	}
	return a, b
}

func TestNewEntry(t *testing.T) {
	e, err := sessions.NewEntry("t1", sessions.KindUser, sessions.User{Name: "Ada", Text: "nul \x00 and \xff"})
	if err != nil {
		t.Fatal(err)
	}
	if e.Turn != "t1" || e.Kind != sessions.KindUser || !json.Valid(e.Data) {
		t.Errorf("%+v", e)
	}
	user, err := sessions.Decode[sessions.User](e)
	if err != nil || user.Name != "Ada" || user.Text != "nul \x00 and \uFFFD" || !user.Sent.IsZero() {
		t.Errorf("%+v, %v", user, err)
	}
	if e, err := sessions.NewEntry("t1", sessions.KindPublished, nil); err != nil || e.Data != nil {
		t.Errorf("%+v, %v", e, err)
	}
	if _, err := sessions.NewEntry("t1", sessions.KindToolUse, sessions.ToolUse{Args: []byte("{")}); err == nil {
		t.Error("arguments that are not JSON became an entry")
	}
	if _, err := sessions.Decode[sessions.User](sessions.Entry{Data: []byte("[]")}); err == nil {
		t.Error("a list was decoded as what a person said")
	}
}

func TestMayBeFromStrangers(t *testing.T) {
	const anna, berta = "telegram:7", "telegram:8"
	for _, tt := range []struct {
		quote sessions.Quote
		kind  sessions.Kind
		want  bool
	}{
		{sessions.Quote{Kind: bus.Forwarded, Person: anna}, sessions.KindUser, false},
		{sessions.Quote{Kind: bus.Forwarded, Person: berta}, sessions.KindUser, true},
		{sessions.Quote{Kind: bus.Forwarded}, sessions.KindUser, true},
		{sessions.Quote{Kind: bus.Answered, Own: true}, sessions.KindUser, true},
		{sessions.Quote{Kind: bus.Answered, Own: true, Person: berta}, sessions.KindUser, true},
		{sessions.Quote{Kind: bus.Told, Own: true, Person: berta}, sessions.KindUser, false},
		{sessions.Quote{Kind: bus.Told, Own: true, Person: berta}, sessions.KindNotice, false},
		{sessions.Quote{Kind: bus.Told, Person: berta}, sessions.KindNotice, true},
		{sessions.Quote{Kind: bus.Told, Person: anna}, sessions.KindNotice, true},
		{sessions.Quote{Kind: bus.Edited, Person: anna}, sessions.KindNotice, false},
		{sessions.Quote{Kind: bus.Edited, Person: berta}, sessions.KindNotice, true},
		{sessions.Quote{Kind: bus.Reported, Person: anna}, sessions.KindNotice, true},
	} {
		if got := tt.quote.MayBeFromStrangers(tt.kind, anna); got != tt.want {
			t.Errorf("%+v with a %s of anna: from others %v", tt.quote, tt.kind, got)
		}
	}
	if !(sessions.Quote{Kind: bus.Forwarded}).MayBeFromStrangers(sessions.KindUser, "") {
		t.Error("nobody's quote in nobody's entry is trusted")
	}
}
