package gateway_test

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/gateway"
	"parley/channels/stagetest"
)

// For each refused message, the operator learns the rule, both from the log and from the gateway, but nothing
// of the text. The sender of a message that was not meant for the bot is not named.
func TestRefusalsAreReported(t *testing.T) {
	var told []gateway.Refusal
	setup := func(s *testStage, g *gateway.Gateway) {
		g.OnRefused = func(r gateway.Refusal) { told = append(told, r) }
		g.Log = slog.New(slog.NewTextHandler(s.Log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	access := gateway.Access{Policy: "list", AllowFrom: []string{"1"}, Chats: []gateway.ListenedGroup{{ID: "room"}}}
	withConfiguredGateway(t, bus.Caps{Inbound: 1}, access, setup, func(t *testing.T, s *testStage) {
		s.receive(t, stagetest.PrivateMessage("m1", "7", "my secret plan"))
		s.receive(t, groupMessage("m2", "1", "elsewhere", "my secret plan"))
		aside := groupMessage("m3", "7", "room", "my secret plan")
		aside.Mentioned = false
		s.receive(t, aside)
		s.receive(t, stagetest.PrivateMessage("m4", "1", "taken"))
		s.receive(t, stagetest.PrivateMessage("m5", "1", "my secret plan"))
		nowhere := stagetest.PrivateMessage("m6", "1", "my secret plan")
		nowhere.At.Chat = "nowhere"
		s.receive(t, nowhere)
		stop := groupMessage("m7", "7", "room", "/stop")
		stop.Mentioned = false
		s.receive(t, stop)
		press := pressInGroup("m8", "7", "/approve abc")
		press.At.Chat = "room"
		if err := s.Platform.Say(t.Context(), press); !errors.Is(err, channels.ErrNotAdmitted) {
			t.Errorf("a press of a stranger gave %v", err)
		}

		var got []string
		for _, r := range told {
			got = append(got, strings.Join([]string{r.Rule, r.Message, r.Person, r.At.String(), r.Session}, " "))
		}
		want := []string{
			"stranger m1 c:7 c:7 ", "chat_not_listed m2  c:elsewhere ", "not_mentioned m3  c:room ", "full m5 c:1 c:1 main:c:1",
			"no_session m6 c:1 c:nowhere ", "not_mentioned m7  c:room ", "stranger m8 c:7 c:room ",
		}
		if !slices.Equal(got, want) {
			t.Errorf("told\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		for _, line := range []string{
			`level=INFO msg="message refused" channel=c id=m1 chat=c:7 rule=stranger person=c:7`,
			`level=DEBUG msg="message refused" channel=c id=m3 chat=c:room rule=not_mentioned` + "\n",
			`level=INFO msg="message refused" channel=c id=m5 chat=c:1 rule=full person=c:1 session=main:c:1`,
		} {
			if strings.Count(s.Log.String(), line) != 1 {
				t.Errorf("the log lacks %q:\n%s", line, s.Log)
			}
		}
		if strings.Contains(s.Log.String(), "secret") {
			t.Errorf("the log has what was said:\n%s", s.Log)
		}
	})
}

// A quietChannel is a channel that does not pass on messages that are not meant for the bot.
type quietChannel struct {
	channels.Channel
	*channels.Unaddressed
}

// Messages that a channel does not pass on are reported too, with the rule of their group. The report has no
// thread, so each group has one record.
func TestUnaddressedMessagesAreReported(t *testing.T) {
	var told []gateway.Refusal
	ch := quietChannel{Unaddressed: &channels.Unaddressed{}}
	ch.Note("early", bus.Address{Channel: "c", Chat: "room"}) // before the gateway receives
	setup := func(_ *testStage, g *gateway.Gateway) {
		ch.Channel = g.Channel
		g.Channel, g.OnRefused = ch, func(r gateway.Refusal) { told = append(told, r) }
	}
	withConfiguredGateway(t, bus.Caps{}, gateway.Access{Policy: "open", Chats: []gateway.ListenedGroup{{ID: "room"}}}, setup, func(t *testing.T, s *testStage) {
		s.receive(t, stagetest.PrivateMessage("m0", "1", "x")) // from here on the gateway receives
		ch.Note("m1", bus.Address{Channel: "c", Chat: "room", Thread: "t1"})
		ch.Note("m2", bus.Address{Channel: "c", Chat: "elsewhere"})
		want := []gateway.Refusal{
			{Rule: gateway.RuleMention, Message: "m1", At: bus.Address{Channel: "c", Chat: "room"}},
			{Rule: gateway.RuleChat, Message: "m2", At: bus.Address{Channel: "c", Chat: "elsewhere"}},
		}
		if !slices.Equal(told, want) {
			t.Errorf("told %+v, want %+v", told, want)
		}
	})
}

// A flood of strangers does not fill the log: the next entry says how many refusals were not logged.
func TestAFloodOfRefusalsIsLoggedInPart(t *testing.T) {
	const flood = 5000
	told := 0
	setup := func(_ *testStage, g *gateway.Gateway) { g.OnRefused = func(gateway.Refusal) { told++ } }
	withConfiguredGateway(t, bus.Caps{}, gateway.Access{Policy: "list", AllowFrom: []string{"1"}}, setup, func(t *testing.T, s *testStage) {
		for i := range flood {
			s.receive(t, stagetest.PrivateMessage(fmt.Sprint(i), fmt.Sprint(100+i), "x"))
		}
		lines := strings.Count(s.Log.String(), "message refused")
		if lines < 50 || lines > 500 || told != flood {
			t.Errorf("%d refusals have %d lines; %d were told", flood, lines, told)
		}
		time.Sleep(time.Minute)
		s.receive(t, stagetest.PrivateMessage("later", "7", "x"))
		if want := fmt.Sprintf("id=later chat=c:7 rule=stranger person=c:7 unlogged=%d\n", flood-lines); !strings.Contains(s.Log.String(), want) {
			t.Errorf("the log lacks %q", want)
		}
	})
}
