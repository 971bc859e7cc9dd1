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

// Of each message that is refused the operator learns by which rule, at once in the log and from the
// gateway, and nothing of its words. Who has not spoken to the bot is not named.
func TestRefusalsAreTold(t *testing.T) {
	var told []gateway.Refusal
	setup := func(s *stage, g *gateway.Gateway) {
		g.Refused = func(r gateway.Refusal) { told = append(told, r) }
		g.Log = slog.New(slog.NewTextHandler(s.Log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	access := gateway.Access{Policy: "list", AllowFrom: []string{"1"}, Chats: []gateway.Chat{{ID: "room"}}}
	inGatewayOn(t, bus.Caps{Inbound: 1}, access, setup, func(t *testing.T, s *stage) {
		s.say(t, stagetest.Said("m1", "7", "my secret plan"))
		s.say(t, inGroup("m2", "1", "elsewhere", "my secret plan"))
		aside := inGroup("m3", "7", "room", "my secret plan")
		aside.Mentioned = false
		s.say(t, aside)
		s.say(t, stagetest.Said("m4", "1", "taken"))
		s.say(t, stagetest.Said("m5", "1", "my secret plan"))
		nowhere := stagetest.Said("m6", "1", "my secret plan")
		nowhere.At.Chat = "nowhere"
		s.say(t, nowhere)
		stop := inGroup("m7", "7", "room", "/stop")
		stop.Mentioned = false
		s.say(t, stop)
		press := pressed("m8", "7", "/approve abc")
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

// A quiet channel does not hand on what is not meant for the bot.
type quiet struct {
	channels.Channel
	*channels.Unaddressed
}

// What a channel does not hand on is told of as well, by the rule of its group, and without the thread, so that a
// group has one record and not one for each of its threads.
func TestWhatIsNotHandedOnIsTold(t *testing.T) {
	var told []gateway.Refusal
	ch := quiet{Unaddressed: &channels.Unaddressed{}}
	ch.Note("early", bus.Address{Channel: "c", Chat: "room"}) // nobody listens yet
	setup := func(_ *stage, g *gateway.Gateway) {
		ch.Channel = g.Channel
		g.Channel, g.Refused = ch, func(r gateway.Refusal) { told = append(told, r) }
	}
	inGatewayOn(t, bus.Caps{}, gateway.Access{Policy: "open", Chats: []gateway.Chat{{ID: "room"}}}, setup, func(t *testing.T, s *stage) {
		s.say(t, stagetest.Said("m0", "1", "x")) // from now on it receives
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

// A flood of strangers does not fill the log: the next line says how many have none.
func TestAFloodOfRefusalsIsLoggedInPart(t *testing.T) {
	const flood = 5000
	told := 0
	setup := func(_ *stage, g *gateway.Gateway) { g.Refused = func(gateway.Refusal) { told++ } }
	inGatewayOn(t, bus.Caps{}, gateway.Access{Policy: "list", AllowFrom: []string{"1"}}, setup, func(t *testing.T, s *stage) {
		for i := range flood {
			s.say(t, stagetest.Said(fmt.Sprint(i), fmt.Sprint(100+i), "x"))
		}
		lines := strings.Count(s.Log.String(), "message refused")
		if lines < 50 || lines > 500 || told != flood {
			t.Errorf("%d refusals have %d lines; %d were told", flood, lines, told)
		}
		time.Sleep(time.Minute)
		s.say(t, stagetest.Said("later", "7", "x"))
		if want := fmt.Sprintf("id=later chat=c:7 rule=stranger person=c:7 unlogged=%d\n", flood-lines); !strings.Contains(s.Log.String(), want) {
			t.Errorf("the log lacks %q", want)
		}
	})
}
