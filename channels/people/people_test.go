package people_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"parley/bus"
	"parley/bus/bustest"
	"parley/bus/sqlitebus"
	"parley/channels"
	"parley/channels/people"
	"parley/channels/sqlbook"
	"parley/channels/stagetest"
)

// A stage is Commands over a real bus and book.
type stage struct {
	*testing.T
	commands *people.Commands
	bus      *sqlitebus.Bus
	book     *sqlbook.Book
	n        int
}

func newStage(t *testing.T) *stage {
	t.Helper()
	on := stagetest.Open(t, t.TempDir(), sqlitebus.Config{Caps: bus.Caps{Inbound: 20, Outbound: 100}})
	t.Cleanup(on.Close)
	return &stage{T: t, bus: on.Bus, book: on.Book, commands: &people.Commands{Book: on.Book, Bus: on.Bus, Prefix: func(channel string) string {
		return map[string]string{"slack": "!"}[channel] + map[bool]string{true: "", false: "/"}[channel == "slack"]
	}}}
}

// command is one that somebody says in a chat with the bot alone.
func (s *stage) command(person, text, args string) bus.Inbound {
	s.n++
	channel, user, _ := strings.Cut(person, ":")
	return bus.Inbound{ID: person + "/" + string(rune('a'+s.n)), Kind: bus.Command, Text: text, Args: args, From: bus.Person{ID: person}, At: bus.Address{Channel: channel, Chat: "D" + user}}
}

// take carries a command out, and again as after a crash.
func (s *stage) take(in bus.Inbound) {
	s.Helper()
	for range 2 {
		if err := s.commands.Handle(s.Context(), in); err != nil {
			s.Fatal(err)
		}
	}
}

// taken returns what was said on a channel.
func (s *stage) taken(channel string) []bus.Outbound {
	s.Helper()
	return bustest.TakeOutbound(s, s.bus, channel)
}

// says is the one thing that was said on a channel.
func (s *stage) says(channel string, words ...string) bus.Outbound {
	s.Helper()
	all := s.taken(channel)
	if len(all) != 1 {
		s.Fatalf("on %s was said %+v", channel, all)
	}
	for _, w := range words {
		if !strings.Contains(all[0].Text, w) {
			s.Errorf("on %s was said %q, which lacks %q", channel, all[0].Text, w)
		}
	}
	return all[0]
}

func (s *stage) remember(person, text string) {
	s.Helper()
	if err := s.book.Remember(s.Context(), channels.ScopePerson, person, text, true, false, func(string) (string, error) { return text, nil }); err != nil {
		s.Fatal(err)
	}
}

var linkCode = regexp.MustCompile("`link ([a-z2-7]{10})`")

// TestLinking: a code on the one channel, its use on the other, both are told, and what is
// remembered is the same; the code works once, and off undoes it.
func TestLinking(t *testing.T) {
	s := newStage(t)
	s.remember("telegram:1", "likes tea")
	s.remember("slack:U1", "lives in Ulm")
	s.take(s.command("telegram:1", "link", ""))
	code := linkCode.FindStringSubmatch(s.says("telegram", "10 minutes").Text)[1]
	s.take(s.command("telegram:1", "link", code))
	s.says("telegram", "doesn't work")
	s.take(s.command("slack:U1", "link", "`"+strings.ToUpper(code)+"`"))
	s.says("slack", "`telegram:1`", "!link off")
	if out := s.says("telegram", "`slack:U1` is now linked to you", "/link off"); out.To.Chat != "D1" {
		t.Errorf("it is said at %s", out.To)
	}
	s.take(s.command("discord:9", "link", code))
	s.says("discord", "doesn't work")
	s.take(s.command("slack:U1", "memory", ""))
	s.says("slack", "likes tea", "lives in Ulm", "!memory clear")
	if a, err := s.book.Account(t.Context(), "slack:U1"); err != nil || a != "telegram:1" {
		t.Errorf("it is counted as %s, %v", a, err)
	}
	off := s.command("telegram:1", "link", "off")
	s.take(off)
	s.says("telegram", "no longer linked to `slack:U1`")
	s.says("slack", "`telegram:1` is no longer linked")
	if a, err := s.book.Account(t.Context(), "slack:U1"); err != nil || a != "slack:U1" {
		t.Errorf("it is counted as %s, %v", a, err)
	}
	s.take(s.command("telegram:1", "link", "off"))
	s.says("telegram", "aren't linked")
}

// Where no platform is, codes are said and none is made; each change is noted.
func TestLinkingWithoutAPlatform(t *testing.T) {
	s := newStage(t)
	changes := 0
	s.commands.Changed = func() { changes++ }
	here := func(args, want string) {
		t.Helper()
		answer, err := s.commands.LinkHere(t.Context(), s.command("web:ann", people.Link, args))
		if err != nil || !strings.Contains(answer, want) {
			t.Errorf("/link %s: %q, %v", args, answer, err)
		}
	}
	here("", "`/link CODE` here")
	here("abcdefghij", "doesn't work")
	s.take(s.command("telegram:1", people.Link, ""))
	code := linkCode.FindStringSubmatch(s.says("telegram").Text)[1]
	here(code, "linked to `telegram:1`")
	s.says("telegram", "`web:ann` is now linked", "web page")
	here("", "linked to `telegram:1`")
	here("off", "no longer linked")
	s.says("telegram", "no longer linked")
	here("off", "aren't linked")
	if changes != 2 {
		t.Errorf("%d changes were noted", changes)
	}
}

func TestMemoryIsShownAndErased(t *testing.T) {
	s := newStage(t)
	s.take(s.command("telegram:1", "memory", ""))
	s.says("telegram", "don't remember anything")
	s.remember("telegram:1", "likes tea\n\nhates rain")
	s.remember("telegram:2", "another's")
	s.take(s.command("telegram:1", "memory", ""))
	if out := s.says("telegram", "> likes tea\n> \n> hates rain"); strings.Contains(out.Text, "another") {
		t.Errorf("it says %q", out.Text)
	}
	s.take(s.command("telegram:1", "memory", "what?"))
	s.says("telegram", "/memory clear")
	clear := s.command("telegram:1", "memory", "Clear")
	s.take(clear)
	s.says("telegram", "erased")
	for person, want := range map[string]string{"telegram:1": "", "telegram:2": "another's"} {
		if got, _, err := s.book.Memory(t.Context(), channels.ScopePerson, person); err != nil || got != want {
			t.Errorf("of %s is remembered %q, %v", person, got, err)
		}
	}
	s.remember("telegram:1", strings.Repeat("long ", 2000))
	s.take(clear) // delivered again: it does not erase what is remembered since
	s.take(s.command("telegram:1", "memory", ""))
	if out := s.says("telegram"); out.File == nil || len(out.File.Data) != 10000 {
		t.Errorf("what is long goes as %+v", out.File)
	}
}

// Where others read along nothing is shown, and no code is given.
func TestNothingIsShownInGroups(t *testing.T) {
	s := newStage(t)
	s.remember("telegram:1", "likes tea")
	for _, text := range []string{"memory", "link"} {
		in := s.command("telegram:1", text, "")
		in.Group = true
		s.take(in)
		if out := s.says("telegram", "private"); strings.Contains(out.Text, "tea") || linkCode.MatchString(out.Text) {
			t.Errorf("a group is told %q", out.Text)
		}
	}
}

// Who guesses codes is stopped for a while, also from using one that is good; nobody else is.
func TestCodesAreNotGuessed(t *testing.T) {
	s := newStage(t)
	now := time.Now().Truncate(time.Second)
	s.commands.Now = func() time.Time { return now }
	s.take(s.command("telegram:1", "link", ""))
	code := linkCode.FindStringSubmatch(s.says("telegram", "10 minutes").Text)[1]
	say := func(person, code string) {
		t.Helper()
		if err := s.commands.Handle(t.Context(), s.command(person, "link", code)); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 {
		say("slack:U1", "aaaaaaaaaa")
		s.says("slack", "doesn't work")
	}
	say("slack:U1", code)
	s.says("slack", "10 wrong codes", now.Add(10*time.Minute).UTC().Format("15:04"))
	if all, err := s.book.LinkedWith(t.Context(), "slack:U1"); err != nil || len(all) > 0 {
		t.Errorf("linked are %+v, %v", all, err)
	}
	now = now.Add(10 * time.Minute)
	say("slack:U1", "aaaaaaaaaa")
	s.says("slack", "doesn't work")
	say("slack:U2", code)
	s.says("slack", "You're linked")
}
