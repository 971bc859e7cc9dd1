package dispatch_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/channelstest"
	"parley/channels/dispatch"
)

func TestARefusedAnswerIsExplainedToItsChat(t *testing.T) {
	setup := func(s *testStage, _ *dispatch.Dispatcher) {
		s.Platform.ChannelLimits.Length = 64
		s.Platform.OnSend = func(_ context.Context, _ bus.Address, part channels.Part) (bool, error) {
			if strings.Contains(part.Text, "bad") {
				return false, &channels.SendError{Fault: channels.Rejected, Code: "ENTITIES_TOO_LONG"}
			}
			return true, nil
		}
	}
	withDispatcher(t, setup, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		told := sessionNotice("d", "3", "bad")
		s.publish(t, newOutbound("a", "1", "bad"), newOutbound("b", "1", "next"), newOutbound("c", "2", strings.Repeat("good ", 12)+"more of it and bad"), told, subjectMessage("e", "4", "", "bad"))
		synctest.Wait()
		wantTexts(t, s, "3")
		wantTexts(t, s, "4")
		for chat, want := range map[string]string{
			"1": "next|I have an answer, but I can't show it here: the platform refused it (ENTITIES_TOO_LONG). Please ask again, perhaps for something shorter or plainer.",
			"2": strings.Repeat("good ", 12) + "more|There's more to this answer, but I can't show it here: the platform refused it (ENTITIES_TOO_LONG). Please ask again, perhaps for something shorter or plainer.",
		} {
			texts := s.Platform.Texts(chat)
			got := texts[0] + "|" + strings.Join(texts[1:], " ")
			if strings.ReplaceAll(got, "`", "") != want {
				t.Errorf("chat %s got %q, want %q", chat, got, want)
			}
		}
		if d := s.TopicDepth(t, bus.OutboundTopic("c")); d.Dead != 4 || d.Waiting != 0 {
			t.Errorf("left: %+v", d)
		}
	})
}

func TestAnExplanationThatIsRefusedTooIsNotExplained(t *testing.T) {
	refused := 0
	setup := func(s *testStage, _ *dispatch.Dispatcher) {
		s.Platform.OnSend = func(context.Context, bus.Address, channels.Part) (bool, error) {
			refused++
			return false, &channels.SendError{Fault: channels.Rejected, Code: "odd"}
		}
	}
	withDispatcher(t, setup, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		s.publish(t, newOutbound("a", "1", "x"))
		time.Sleep(time.Hour)
		synctest.Wait()
		if d := s.TopicDepth(t, bus.OutboundTopic("c")); d.Waiting != 0 || refused != 2 {
			t.Errorf("%d refusals, left: %+v", refused, d)
		}
	})
}

func TestKillPointsOfExplanations(t *testing.T) {
	for _, at := range []string{"send:failed 1", "send:excused 1", "send:settled 1", "send:sent 1", "send:marked 1"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := newStage(t, dir, bus.Caps{})
			s.publish(t, newOutbound("a", "picky", "x"))
			s.Close()
			killChild(t, envKillDir+"="+dir, envKillAt+"="+at, envKillSubject+"=1")
			s = newStage(t, dir, bus.Caps{})
			defer s.Close()
			platform := subjectFilePlatform{filePlatform{filepath.Join(dir, "sent")}}
			dispatchUntilEmpty(t, s, platform, nil)
			got := platform.readArrived(t)["picky"]
			var want []string
			for n, p := range s.lookup(t, "a#excuse").Parts {
				for range 1 + p.Interrupted {
					want = append(want, fmt.Sprint("a#excuse/", n))
				}
			}
			if !slices.Equal(slices.Compact(slices.Clone(got)), slices.Compact(slices.Clone(want))) || len(got) > len(want) {
				t.Errorf("arrived %q, want %q at most", got, want)
			}
			if d := s.TopicDepth(t, bus.OutboundTopic("c")); d.Dead != 1 {
				t.Errorf("%+v", d)
			}
		})
	}
}

func TestAMessageWithNothingToShowFails(t *testing.T) {
	withDispatcher(t, nil, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		s.publish(t, newOutbound("a", "1", "\u200b\u2060"), addFallback(subjectMessage("b", "2", "disk", " \n\u3164")), newOutbound("c", "2", "next"))
		synctest.Wait()
		wantTexts(t, s, "2", "next")
		if got := s.Platform.Texts("1"); len(got) != 1 || !strings.Contains(got[0], "nothing visible") {
			t.Errorf("who asked got %q", got)
		}
		for _, id := range []string{"a", "b"} {
			if send := s.lookup(t, id); send.State() != channels.Failed || send.Parts[0].Code != "empty" {
				t.Errorf("%s: %+v", id, send)
			}
		}
		if d := s.TopicDepth(t, bus.OutboundTopic("c")); d.Dead != 0 || d.Waiting != 0 {
			t.Errorf("left: %+v", d)
		}
	})
}

func TestControlCharactersAreRemoved(t *testing.T) {
	var p *channelstest.EditingChannel
	setup := func(s *testStage, d *dispatch.Dispatcher) {
		p = &channelstest.EditingChannel{MemoryChannel: s.Platform, Caption: 50}
		d.Channel = p
	}
	withDispatcher(t, setup, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		file := subjectMessage("b", "2", "", "look")
		file.File = &bus.File{Name: "a/b\"\r\nX-Evil: 1\u202etxt", Data: []byte("x")}
		s.publish(t, subjectMessage("a", "1\r\n2", "", "x"), file)
		synctest.Wait()
		sent := s.Platform.Sent()
		if len(sent) != 1 || sent[0].File == nil || sent[0].File.Name != "a_b___X-Evil: 1_txt" {
			t.Errorf("sent %+v", sent)
		}
		letters, err := s.Bus.DeadLetters(t.Context(), bus.OutboundTopic("c"), "", 10)
		if err != nil || len(letters) != 1 || letters[0].Message.ID != "a" || letters[0].Reason != "bad_address" {
			t.Errorf("dead letters %+v, %v", letters, err)
		}
	})
}
