package personal_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"parley/bus"
	"parley/bus/sqlitebus"
	"parley/channels"
	"parley/channels/sqlbook"
	"parley/cmd/parley/personal"
)

// A stage is Commands over a real bus and book.
type stage struct {
	*testing.T
	commands *personal.Commands
	bus      *sqlitebus.Bus
	book     *sqlbook.Book
	n        int
}

func newStage(t *testing.T) *stage {
	t.Helper()
	dir := t.TempDir()
	b, err := sqlitebus.Open(t.Context(), sqlitebus.Config{Path: filepath.Join(dir, "bus.db"), Caps: bus.Caps{Inbound: 20, Outbound: 100}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	book, err := sqlbook.Open(t.Context(), filepath.Join(dir, "book.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { book.Close() })
	return &stage{T: t, bus: b, book: book, commands: &personal.Commands{Book: book, Bus: b, Prefix: func(channel string) string {
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

// sent is what has been said at an address, and is taken.
func (s *stage) sent(channel string) (all []bus.Outbound) {
	s.Helper()
	for {
		depth, err := s.bus.Depth(s.Context(), bus.OutboundTopic(channel))
		if err != nil {
			s.Fatal(err)
		}
		if depth.Waiting == 0 {
			return all
		}
		lease, err := s.bus.Claim(s.Context(), bus.OutboundTopic(channel))
		if err != nil {
			s.Fatal(err)
		}
		mail, err := lease.Mail(s.Context(), 0)
		if err != nil {
			s.Fatal(err)
		}
		for _, m := range mail {
			out, err := bus.DecodeOutbound(m.Body)
			if err != nil {
				s.Fatal(err)
			}
			all = append(all, out)
		}
		if err := lease.Settle(s.Context(), bus.End{Done: mail[len(mail)-1].Seq}); err != nil {
			s.Fatal(err)
		}
	}
}

// says is the one thing that was said on a channel.
func (s *stage) says(channel string, words ...string) bus.Outbound {
	s.Helper()
	all := s.sent(channel)
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
	if err := s.book.Remember(s.Context(), channels.OfPerson, person, text, true, false, func(string) (string, error) { return text, nil }); err != nil {
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
	code := linkCode.FindStringSubmatch(s.says("telegram", "ten minutes").Text)[1]
	s.take(s.command("telegram:1", "link", code))
	s.says("telegram", "not good")
	s.take(s.command("slack:U1", "link", "`"+strings.ToUpper(code)+"`"))
	s.says("slack", "`telegram:1`", "!link off")
	if out := s.says("telegram", "`slack:U1` has been linked", "/link off"); out.To.Chat != "D1" {
		t.Errorf("it is said at %s", out.To)
	}
	s.take(s.command("discord:9", "link", code))
	s.says("discord", "not good")
	s.take(s.command("slack:U1", "memory", ""))
	s.says("slack", "likes tea", "lives in Ulm", "!memory clear")
	if a, err := s.book.Account(t.Context(), "slack:U1"); err != nil || a != "telegram:1" {
		t.Errorf("it is counted as %s, %v", a, err)
	}
	off := s.command("telegram:1", "link", "off")
	s.take(off)
	s.says("telegram", "no longer linked with `slack:U1`")
	s.says("slack", "`telegram:1` is no longer linked")
	if a, err := s.book.Account(t.Context(), "slack:U1"); err != nil || a != "slack:U1" {
		t.Errorf("it is counted as %s, %v", a, err)
	}
	s.take(s.command("telegram:1", "link", "off"))
	s.says("telegram", "linked with nobody")
}

func TestMemoryIsShownAndErased(t *testing.T) {
	s := newStage(t)
	s.take(s.command("telegram:1", "memory", ""))
	s.says("telegram", "remember nothing")
	s.remember("telegram:1", "likes tea\n\nhates rain")
	s.remember("telegram:2", "another's")
	s.take(s.command("telegram:1", "memory", ""))
	if out := s.says("telegram", "> likes tea\n> \n> hates rain"); strings.Contains(out.Text, "another") {
		t.Errorf("it says %q", out.Text)
	}
	s.take(s.command("telegram:1", "memory", "what?"))
	s.says("telegram", "/memory clear")
	s.take(s.command("telegram:1", "memory", "Clear"))
	s.says("telegram", "erased")
	for person, want := range map[string]string{"telegram:1": "", "telegram:2": "another's"} {
		if got, _, err := s.book.Recall(t.Context(), channels.OfPerson, person); err != nil || got != want {
			t.Errorf("of %s is remembered %q, %v", person, got, err)
		}
	}
	s.remember("telegram:1", strings.Repeat("long ", 2000))
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
		if out := s.says("telegram", "alone"); strings.Contains(out.Text, "tea") || linkCode.MatchString(out.Text) {
			t.Errorf("a group is told %q", out.Text)
		}
	}
}
