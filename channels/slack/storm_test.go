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

// A storm is a fake Slack with random failures, and the messages that were sent to the bot there.
type storm struct {
	*rig
	t           *testing.T
	stepRand    *rand.Rand
	recorder    *messageRecorder
	stop        func() error
	wantTexts   map[string]string // by message id
	threadRoots map[string]string // the newest thread of each channel

	mu          sync.Mutex
	failureRand *rand.Rand // for failures, which happen concurrently
}

const textForOthers = "<@U9> did you see?" // a message between other people

// Whatever fails while people talk, each message to the bot is published once, the messages of one conversation
// in order, and no message between other people.
func TestNoMessageIsLostDuringRandomFailures(t *testing.T) {
	for seed := range uint64(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := newRig(t)
			r.server.PingEvery(100 * time.Millisecond)
			s := &storm{
				rig: r, t: t, stepRand: rand.New(rand.NewPCG(seed, 1)), failureRand: rand.New(rand.NewPCG(seed, 2)),
				recorder: newMessageRecorder(r), wantTexts: map[string]string{}, threadRoots: map[string]string{},
			}
			s.failRequests()
			s.restart()
			for range 150 {
				s.doRandomStep()
			}
			s.checkAllArrived()
		})
	}
}

// chance returns true with the given probability, in percent.
func (s *storm) chance(percent int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failureRand.IntN(100) < percent
}

// failRequests makes some requests to several methods fail, each method in its own way.
func (s *storm) failRequests() {
	for method, act := range map[string]slacktest.Act{
		"conversations.history": slacktest.Limit("0"),
		"conversations.replies": slacktest.Status(503, "somebody"),
		"users.conversations":   slacktest.Cut(false),
		"users.info":            slacktest.Limit("0"),
		"apps.connections.open": slacktest.Status(500, "somebody"),
	} {
		s.server.Fail(method, "", 0, func(w http.ResponseWriter, r *http.Request, do http.Handler) {
			if s.chance(20) {
				act(w, r, do)
				return
			}
			do.ServeHTTP(w, r)
		})
	}
}

// restart starts a new channel, with a bus that sometimes is down and sometimes loses its answer.
func (s *storm) restart() {
	s.Channel = s.newChannel(s.t)
	s.ShortenTimeouts(50*time.Millisecond, 500*time.Millisecond, 10*time.Millisecond)
	s.stop = startReceiving(s.t, s.Channel, func(ctx context.Context, in bus.Inbound) error {
		if s.chance(10) {
			return errors.New("the bus is away")
		}
		if err := s.recorder.publish(ctx, in); err != nil {
			return err
		}
		if s.chance(10) {
			return errors.New("its answer was lost")
		}
		return nil
	})
	waitUntil(s.t, "a socket and a cursor", func() bool { return s.server.Sockets() > 0 && s.savedCursor(s.t) != "" })
}

// sayToBot has somebody post a text to the bot, and records that it must arrive.
func (s *storm) sayToBot(chat, text string, post func(text string) (ts string)) {
	text = fmt.Sprint(text, " ", len(s.wantTexts))
	s.wantTexts["slack:"+slacktest.Team+":"+chat+":"+post(text)] = text
}

func (s *storm) sayDirectly() {
	chat := fmt.Sprint("D", s.stepRand.IntN(5))
	s.sayToBot(chat, "directly", func(text string) string { return s.server.Say(chat, "U1", text) })
}

func (s *storm) doRandomStep() {
	channel := fmt.Sprint("C", s.stepRand.IntN(3))
	switch k := s.stepRand.IntN(100); {
	case k < 40:
		s.sayDirectly()
	case k < 55:
		s.threadRoots[channel] = s.server.Say(channel, "U2", textForOthers)
		s.server.Reply(channel, s.threadRoots[channel], "U3", textForOthers)
		s.sayToBot(channel, "mention", func(text string) string {
			return s.server.Reply(channel, s.threadRoots[channel], "U2", botMention+" "+text)
		})
	case k < 80 && s.threadRoots[channel] != "":
		s.sayToBot(channel, "reply", func(text string) string { return s.server.Reply(channel, s.threadRoots[channel], "U3", text) })
	case k < 92:
		s.server.Say(channel, "U4", textForOthers)
	case k < 96:
		s.server.CutSockets()
	case k < 97:
		s.server.Disconnect("warning", time.Millisecond)
	default:
		if err := s.stop(); err != nil {
			s.t.Fatal(err)
		}
		if s.stepRand.IntN(2) == 0 {
			s.sayDirectly()
			s.server.DropUnacked() // no socket is open, and Slack has stopped trying
		}
		s.restart()
	}
}

func (s *storm) checkAllArrived() {
	deadline := time.After(3 * testTimeout)
	for len(s.recorder.all()) < len(s.wantTexts) {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-deadline:
			s.t.Fatalf("%d of %d messages arrived", len(s.recorder.all()), len(s.wantTexts))
		}
	}
	last := map[bus.Address]bus.Inbound{}
	for _, in := range s.recorder.all() {
		if s.wantTexts[in.ID] != in.Text {
			s.t.Errorf("%s says %q, want %q", in.ID, in.Text, s.wantTexts[in.ID])
		}
		if before := last[in.At]; in.ID < before.ID {
			s.t.Errorf("%q came after %q", in.Text, before.Text)
		}
		last[in.At] = in
		delete(s.wantTexts, in.ID)
	}
	for _, text := range s.wantTexts {
		s.t.Errorf("%q is missing", text)
	}
}
