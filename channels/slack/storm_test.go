package slack_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"parley/bus"
	"parley/channels/slack/slacktest"
)

// A storm is a Slack in which much goes wrong, and what was said to the bot there.
type storm struct {
	*rig
	t     *testing.T
	rnd   *rand.Rand
	mail  *mailbox
	stop  func() error
	want  map[string]string // texts by the ids of messages
	roots map[string]string // of each channel's newest thread

	mu   sync.Mutex
	dice *rand.Rand // for what happens at the same time
}

const shared = "<@U9> did you see?" // among people

// Whatever breaks while people talk, each message to the bot is handed on once,
// those of a conversation in order, and nothing that is said among people.
func TestNothingIsLostWhileMuchBreaks(t *testing.T) {
	for seed := range uint64(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := newRig(t)
			r.server.PingEvery(100 * time.Millisecond)
			s := &storm{
				rig: r, t: t, rnd: rand.New(rand.NewPCG(seed, 1)), dice: rand.New(rand.NewPCG(seed, 2)),
				mail: newMailbox(r), want: map[string]string{}, roots: map[string]string{},
			}
			s.failRequests()
			s.start()
			for range 150 {
				s.step()
			}
			s.check()
		})
	}
}

// happens is true so many times in a hundred.
func (s *storm) happens(percent int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dice.IntN(100) < percent
}

// failRequests makes a part of the requests to some methods fail, each in its own way.
func (s *storm) failRequests() {
	for method, act := range map[string]slacktest.Act{
		"conversations.history": slacktest.Limit("0"),
		"conversations.replies": slacktest.Status(503, "somebody"),
		"users.conversations":   slacktest.Cut(false),
		"users.info":            slacktest.Limit("0"),
		"apps.connections.open": slacktest.Status(500, "somebody"),
	} {
		s.server.Fail(method, "", 0, func(w http.ResponseWriter, r *http.Request, do http.Handler) {
			if s.happens(20) {
				act(w, r, do)
				return
			}
			do.ServeHTTP(w, r)
		})
	}
}

// start begins anew, with a bus that now and then is away and now and then loses
// its answer.
func (s *storm) start() {
	s.Channel = s.channel(s.t)
	s.Quicken(50*time.Millisecond, 500*time.Millisecond, 10*time.Millisecond)
	s.stop = receive(s.t, s.Channel, func(ctx context.Context, in bus.Inbound) error {
		if s.happens(10) {
			return errors.New("the bus is away")
		}
		if err := s.mail.publish(ctx, in); err != nil {
			return err
		}
		if s.happens(10) {
			return errors.New("its answer was lost")
		}
		return nil
	})
	until(s.t, "a socket and a cursor", func() bool { return s.server.Sockets() > 0 && s.cursor(s.t) != "" })
}

// says lets somebody speak to the bot.
func (s *storm) says(chat, text string, post func(text string) (ts string)) {
	text = fmt.Sprint(text, " ", len(s.want))
	s.want["slack:"+slacktest.Team+":"+chat+":"+post(text)] = text
}

func (s *storm) directly() {
	chat := fmt.Sprint("D", s.rnd.IntN(5))
	s.says(chat, "directly", func(text string) string { return s.server.Say(chat, "U1", text) })
}

func (s *storm) step() {
	channel := fmt.Sprint("C", s.rnd.IntN(3))
	switch k := s.rnd.IntN(100); {
	case k < 40:
		s.directly()
	case k < 55:
		s.roots[channel] = s.server.Say(channel, "U2", shared)
		s.server.Reply(channel, s.roots[channel], "U3", shared)
		s.says(channel, "mention", func(text string) string {
			return s.server.Reply(channel, s.roots[channel], "U2", called+" "+text)
		})
	case k < 80 && s.roots[channel] != "":
		s.says(channel, "reply", func(text string) string { return s.server.Reply(channel, s.roots[channel], "U3", text) })
	case k < 92:
		s.server.Say(channel, "U4", shared)
	case k < 96:
		s.server.CutSockets()
	case k < 97:
		s.server.Disconnect("warning", time.Millisecond)
	default:
		if err := s.stop(); err != nil {
			s.t.Fatal(err)
		}
		if s.rnd.IntN(2) == 0 {
			s.directly()
			s.server.DropUnacked() // nobody is connected, and Slack has given up
		}
		s.start()
	}
}

func (s *storm) check() {
	deadline := time.After(3 * patience)
	for len(s.mail.all()) < len(s.want) {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-deadline:
			s.t.Fatalf("%d of %d messages arrived", len(s.mail.all()), len(s.want))
		}
	}
	last := map[bus.Address]bus.Inbound{}
	for _, in := range s.mail.all() {
		if s.want[in.ID] != in.Text {
			s.t.Errorf("%s says %q, want %q", in.ID, in.Text, s.want[in.ID])
		}
		if before := last[in.At]; in.ID < before.ID {
			s.t.Errorf("%q came after %q", in.Text, before.Text)
		}
		last[in.At] = in
		delete(s.want, in.ID)
	}
	for _, text := range s.want {
		s.t.Errorf("%q is missing", text)
	}
}
