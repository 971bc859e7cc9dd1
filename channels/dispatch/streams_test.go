package dispatch_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/channelstest"
	"parley/channels/dispatch"
	"parley/channels/slack"
	"parley/channels/slack/slacktest"
	"parley/channels/stagetest"
)

// On a platform with growing messages, each draft reports how much of the answer it shows; the answer does not.
func TestDraftsReportTheirGrowth(t *testing.T) {
	for _, c := range []struct {
		stream string
		older  bool // a process of a release without growing messages is running
	}{{}, {stream: dispatch.StreamEdit}, {older: true}} {
		setup := func(s *testStage, d *dispatch.Dispatcher) {
			d.MayGrow = func(context.Context) bool { return !c.older }
			s.Platform.ChannelLimits.DraftEvery, s.Platform.ChannelLimits.Length, s.Platform.ChannelLimits.Streams = draftEvery, 1000, true
			d.Channel, d.Policy.Stream = &channelstest.EditingChannel{MemoryChannel: s.Platform}, c.stream
		}
		withDispatcher(t, setup, func(t *testing.T, s *testStage, _ *runningDispatcher) {
			synctest.Wait()
			a := s.Speaker("t", "1")
			a.Start()
			a.EmitText("Let me *look* ")
			sleep(3 * time.Second)
			a.EmitToolCall("exec_shell", "make")
			sleep(3 * time.Second)
			a.EmitText("It ")
			sleep(3 * time.Second)
			a.EmitMoreText("is done")
			sleep(3 * time.Second)
			s.publishAnswer(t, a, "The answer")
			sleep(time.Minute)
			var got []channels.Growth
			for _, sent := range s.Platform.Sent() {
				if sent.Part.Growing != nil {
					got = append(got, *sent.Part.Growing)
				}
			}
			if c.older { // a draft that didn't start as a growing message is edited, whatever Grows says
				if sent := s.Platform.Sent(); len(sent) != 5 || sent[0].Part.Growing != nil {
					t.Errorf("the draft was begun as %+v", sent)
				}
				return
			}
			if c.stream == dispatch.StreamEdit {
				if len(got) > 0 {
					t.Errorf("it is told of %+v", got)
				}
				return
			}
			if len(got) != 4 || len(s.Platform.Sent()) != 5 {
				t.Fatalf("it is told of %+v, in %+v", got, s.Platform.Sent())
			}
			if got[0] != (channels.Growth{Turn: a.Turn, Text: "Let me *look*"}) || got[1].Text != got[0].Text || !strings.Contains(got[1].Doing, "make") ||
				got[1].Title != "exec_shell make" || got[1].Step != 1 ||
				got[2] != (channels.Growth{Turn: a.Turn, Answer: 1, Text: "It", Step: 1}) || got[3] != (channels.Growth{Turn: a.Turn, Answer: 1, Text: "It is done", Step: 1}) {
				t.Errorf("it is told of %+v", got)
			}
		})
	}
}

// envKillStreams is set in the environment of a child process that shows drafts on Slack, to "URL THREAD".
const envKillStreams = "CHANNELS_KILL_STREAMS"

func newSlackChannel(t *testing.T, url string) channels.Channel {
	t.Helper()
	c, err := slack.New(slack.Config{Name: "c", BotToken: "xoxb-1", AppToken: "xapp-1", APIURL: url, RateLimit: slack.NoPace})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// paneSpeaker returns a speaker whose turn answers in an assistant pane.
func paneSpeaker(s *testStage, thread string) *stagetest.Speaker {
	a := s.Speaker("t", "D7")
	a.At.Thread = thread
	return a
}

// Wherever a process with a growing answer is killed, the answer is the only message in the end.
func TestKillPointsOfStreams(t *testing.T) {
	for _, c := range []struct {
		point  string
		begins bool // whether the message was started before that point
	}{
		{"draft:begun", false}, {"draft:sent", true}, {"draft:marked", true},
		{"send:begun", true}, {"send:sent", true}, {"send:marked", true}, {"draft:closed", true}, {"send:settled", true},
	} {
		t.Run(c.point, func(t *testing.T) {
			t.Parallel()
			server := slacktest.New("xoxb-1", "xapp-1")
			url, err := server.Start("127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = server.Close() }() // nothing is left to check
			thread := server.OpenPane("U7", "")
			dir := t.TempDir()
			killChild(t, envKillDir+"="+dir, envKillAt+"="+c.point+" 1", envKillStreams+"="+url+" "+thread)
			if begun := server.Calls("chat.startStream") > 0; begun != c.begins {
				t.Errorf("begun: %t", begun)
			}
			s := newStage(t, dir, bus.Caps{})
			defer s.Close()
			s.publish(t, paneSpeaker(s, thread).Reply("The **answer**")) // the answer may have been published already
			dispatchUntilEmpty(t, s, newSlackChannel(t, url), nil)
			var said []slacktest.Message
			for _, m := range server.Sent("D7") {
				if m.Thread == thread {
					said = append(said, m)
				}
			}
			if len(said) != 1 || said[0].Streaming || !strings.HasPrefix(said[0].Key, "t#reply/") || !strings.Contains(said[0].Text, "answer") {
				t.Errorf("in the end there is %+v", said)
			}
		})
	}
}
