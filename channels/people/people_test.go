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

// A commandTest is Commands with a real bus and book.
type commandTest struct {
	*testing.T
	commands *people.Commands
	bus      *sqlitebus.Bus
	book     *sqlbook.Book
	n        int
}

func newCommandTest(t *testing.T) *commandTest {
	t.Helper()
	on := stagetest.Open(t, t.TempDir(), sqlitebus.Config{Caps: bus.Caps{Inbound: 20, Outbound: 100}})
	t.Cleanup(on.Close)
	return &commandTest{T: t, bus: on.Bus, book: on.Book, commands: &people.Commands{Book: on.Book, Bus: on.Bus, Prefix: func(channel string) string {
		return map[string]string{"slack": "!"}[channel] + map[bool]string{true: "", false: "/"}[channel == "slack"]
	}}}
}

// privateCommand returns a command that a person gives in a private chat with the bot.
func (s *commandTest) privateCommand(person, text, args string) bus.Inbound {
	s.n++
	channel, user, _ := strings.Cut(person, ":")
	return bus.Inbound{ID: person + "/" + string(rune('a'+s.n)), Kind: bus.Command, Text: text, Args: args, From: bus.Person{ID: person}, At: bus.Address{Channel: channel, Chat: "D" + user}}
}

// handleTwice carries out a command, and once more as after a crash.
func (s *commandTest) handleTwice(in bus.Inbound) {
	s.Helper()
	for range 2 {
		if err := s.commands.Handle(s.Context(), in); err != nil {
			s.Fatal(err)
		}
	}
}

// sentTo returns the messages that were sent on a channel.
func (s *commandTest) sentTo(channel string) []bus.Outbound {
	s.Helper()
	return bustest.TakeOutbound(s, s.bus, channel)
}

// wantOnly returns the only message that was sent on a channel, and checks its words.
func (s *commandTest) wantOnly(channel string, words ...string) bus.Outbound {
	s.Helper()
	all := s.sentTo(channel)
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

func (s *commandTest) setMemory(person, text string) {
	s.Helper()
	if err := s.book.Remember(s.Context(), channels.ScopePerson, person, text, true, false, func(string) (string, error) { return text, nil }); err != nil {
		s.Fatal(err)
	}
}

var linkCode = regexp.MustCompile("`link ([a-z2-7]{10})`")

// TestLinking makes a code on one channel and uses it on another. Both people are told and share their memory;
// the code works once, and "off" separates them.
func TestLinking(t *testing.T) {
	s := newCommandTest(t)
	s.setMemory("telegram:1", "likes tea")
	s.setMemory("slack:U1", "lives in Ulm")
	s.handleTwice(s.privateCommand("telegram:1", "link", ""))
	code := linkCode.FindStringSubmatch(s.wantOnly("telegram", "10 minutes").Text)[1]
	s.handleTwice(s.privateCommand("telegram:1", "link", code))
	s.wantOnly("telegram", "doesn't work")
	s.handleTwice(s.privateCommand("slack:U1", "link", "`"+strings.ToUpper(code)+"`"))
	s.wantOnly("slack", "`telegram:1`", "!link off")
	if out := s.wantOnly("telegram", "`slack:U1` is now linked to you", "/link off"); out.To.Chat != "D1" {
		t.Errorf("it is said at %s", out.To)
	}
	s.handleTwice(s.privateCommand("discord:9", "link", code))
	s.wantOnly("discord", "doesn't work")
	s.handleTwice(s.privateCommand("slack:U1", "memory", ""))
	s.wantOnly("slack", "likes tea", "lives in Ulm", "!memory clear")
	if a, err := s.book.Account(t.Context(), "slack:U1"); err != nil || a != "telegram:1" {
		t.Errorf("it is counted as %s, %v", a, err)
	}
	off := s.privateCommand("telegram:1", "link", "off")
	s.handleTwice(off)
	s.wantOnly("telegram", "no longer linked to `slack:U1`")
	s.wantOnly("slack", "`telegram:1` is no longer linked")
	if a, err := s.book.Account(t.Context(), "slack:U1"); err != nil || a != "slack:U1" {
		t.Errorf("it is counted as %s, %v", a, err)
	}
	s.handleTwice(s.privateCommand("telegram:1", "link", "off"))
	s.wantOnly("telegram", "aren't linked")
}

// In places without a platform, codes can be used but not made. Each change is reported.
func TestLinkingWithoutAPlatform(t *testing.T) {
	s := newCommandTest(t)
	changes := 0
	s.commands.OnLinksChanged = func() { changes++ }
	here := func(args, want string) {
		t.Helper()
		answer, err := s.commands.LinkHere(t.Context(), s.privateCommand("web:ann", people.Link, args))
		if err != nil || !strings.Contains(answer, want) {
			t.Errorf("/link %s: %q, %v", args, answer, err)
		}
	}
	here("", "`/link CODE` here")
	here("abcdefghij", "doesn't work")
	s.handleTwice(s.privateCommand("telegram:1", people.Link, ""))
	code := linkCode.FindStringSubmatch(s.wantOnly("telegram").Text)[1]
	here(code, "linked to `telegram:1`")
	s.wantOnly("telegram", "`web:ann` is now linked", "web page")
	here("", "linked to `telegram:1`")
	here("off", "no longer linked")
	s.wantOnly("telegram", "no longer linked")
	here("off", "aren't linked")
	if changes != 2 {
		t.Errorf("%d changes were noted", changes)
	}
}

func TestMemoryIsShownAndErased(t *testing.T) {
	s := newCommandTest(t)
	s.handleTwice(s.privateCommand("telegram:1", "memory", ""))
	s.wantOnly("telegram", "don't remember anything")
	s.setMemory("telegram:1", "likes tea\n\nhates rain")
	s.setMemory("telegram:2", "another's")
	s.handleTwice(s.privateCommand("telegram:1", "memory", ""))
	if out := s.wantOnly("telegram", "> likes tea\n> \n> hates rain"); strings.Contains(out.Text, "another") {
		t.Errorf("it says %q", out.Text)
	}
	s.handleTwice(s.privateCommand("telegram:1", "memory", "what?"))
	s.wantOnly("telegram", "/memory clear")
	clear := s.privateCommand("telegram:1", "memory", "Clear")
	s.handleTwice(clear)
	s.wantOnly("telegram", "erased")
	for person, want := range map[string]string{"telegram:1": "", "telegram:2": "another's"} {
		if got, _, err := s.book.Memory(t.Context(), channels.ScopePerson, person); err != nil || got != want {
			t.Errorf("of %s is remembered %q, %v", person, got, err)
		}
	}
	s.setMemory("telegram:1", strings.Repeat("long ", 2000))
	s.handleTwice(clear) // delivered again: must not erase what is remembered since
	s.handleTwice(s.privateCommand("telegram:1", "memory", ""))
	if out := s.wantOnly("telegram"); out.File == nil || len(out.File.Data) != 10000 {
		t.Errorf("what is long goes as %+v", out.File)
	}
}

// In a group, where others can read, nothing is shown and no code is given.
func TestCommandsAreRefusedInGroups(t *testing.T) {
	s := newCommandTest(t)
	s.setMemory("telegram:1", "likes tea")
	for _, text := range []string{"memory", "link"} {
		in := s.privateCommand("telegram:1", text, "")
		in.Group = true
		s.handleTwice(in)
		if out := s.wantOnly("telegram", "private"); strings.Contains(out.Text, "tea") || linkCode.MatchString(out.Text) {
			t.Errorf("a group is told %q", out.Text)
		}
	}
}

// A person who guesses codes is stopped for a while, even with a valid code. Nobody else is affected.
func TestCodesAreNotGuessed(t *testing.T) {
	s := newCommandTest(t)
	now := time.Now().Truncate(time.Second)
	s.commands.Now = func() time.Time { return now }
	s.handleTwice(s.privateCommand("telegram:1", "link", ""))
	code := linkCode.FindStringSubmatch(s.wantOnly("telegram", "10 minutes").Text)[1]
	say := func(person, code string) {
		t.Helper()
		if err := s.commands.Handle(t.Context(), s.privateCommand(person, "link", code)); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 {
		say("slack:U1", "aaaaaaaaaa")
		s.wantOnly("slack", "doesn't work")
	}
	say("slack:U1", code)
	s.wantOnly("slack", "10 wrong codes", now.Add(10*time.Minute).UTC().Format("15:04"))
	if all, err := s.book.LinkedWith(t.Context(), "slack:U1"); err != nil || len(all) > 0 {
		t.Errorf("linked are %+v, %v", all, err)
	}
	now = now.Add(10 * time.Minute)
	say("slack:U1", "aaaaaaaaaa")
	s.wantOnly("slack", "doesn't work")
	say("slack:U2", code)
	s.wantOnly("slack", "You're linked")
}
