package dispatch_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/channelstest"
)

// limitEdits makes a platform limit edits in bytes and new messages in characters.
func limitEdits(p *channelstest.EditingChannel) { p.ChannelLimits.EditBytes = 1000 }

const sentence = "これは長い答えの一文です。" // 13 characters, 39 bytes

func TestADraftBecomesTheFirstPartOfALongAnswer(t *testing.T) {
	withDrafts(t, limitEdits, func(t *testing.T, s *testStage, p *channelstest.EditingChannel) {
		a := s.Speaker("t", "1")
		a.Start()
		a.EmitText(strings.Repeat(sentence, 3))
		sleep(2 * time.Second)
		whole := strings.Repeat(sentence, 70) // 910 characters
		s.publishAnswer(t, a, whole)
		sleep(time.Minute)
		shown := p.Shown("1")
		if len(shown) != 2 || strings.Join(shown, "") != whole {
			t.Errorf("the chat shows %d messages of %d characters", len(shown), len([]rune(strings.Join(shown, ""))))
		}
		if parts := s.lookup(t, "t#reply").Parts; len(parts) != 2 || parts[0].Edits == "" || parts[1].Edits != "" {
			t.Errorf("book: %+v", parts)
		}
	})
}

// A draft of an earlier release may be too long for an edit, and the platform may refuse an edit for other
// reasons.
func TestADraftThatCannotBeReplacedIsWithdrawn(t *testing.T) {
	refuse := false
	setup := func(p *channelstest.EditingChannel) {
		p.OnEdit = func(string) error {
			if refuse {
				refuse = false
				return &channels.SendError{Fault: channels.Rejected, Code: "msg_too_long"}
			}
			return nil
		}
	}
	withDrafts(t, setup, func(t *testing.T, s *testStage, p *channelstest.EditingChannel) {
		a := s.Speaker("t", "1")
		a.Start()
		a.EmitText("The beginning of")
		sleep(2 * time.Second)
		refuse = true
		s.publishAnswer(t, a, "The beginning of an answer")
		sleep(time.Minute)
		wantShown(t, p, "1", "(The answer is below.)", "The beginning of an answer")
	})
}

func TestAFailedWithdrawalIsRetried(t *testing.T) {
	var faults []*channels.SendError
	setup := func(p *channelstest.EditingChannel) {
		p.OnEdit = func(string) error {
			if len(faults) == 0 {
				return nil
			}
			next := faults[0]
			faults = faults[1:]
			return next
		}
	}
	withDrafts(t, setup, func(t *testing.T, s *testStage, p *channelstest.EditingChannel) {
		a := s.Speaker("t", "1")
		a.Start()
		a.EmitText("The beginning of")
		sleep(2 * time.Second)
		long := &channels.SendError{Fault: channels.Rejected, Code: "msg_too_long"}
		faults = []*channels.SendError{long, {Fault: channels.Retry, Code: "http_503"}, long}
		s.publishAnswer(t, a, "The beginning of an answer")
		sleep(time.Minute)
		wantShown(t, p, "1", "(The answer is below.)", "The beginning of an answer")
	})
}

// If a question was to replace a draft, but expires before the platform has accepted it, the draft is
// withdrawn, because no later message would replace it.
func TestTheDraftOfAnExpiredQuestionIsWithdrawn(t *testing.T) {
	busy := false
	setup := func(p *channelstest.EditingChannel) {
		p.OnEdit = func(string) error {
			if busy {
				return &channels.SendError{Fault: channels.Retry, Code: "http_503"}
			}
			return nil
		}
	}
	withDrafts(t, setup, func(t *testing.T, s *testStage, p *channelstest.EditingChannel) {
		a := s.Speaker("t", "1")
		about := func(id, text string, expires time.Time) bus.Outbound {
			out := a.Reply(text)
			out.ID, out.Subject, out.Expires = id, "ask", expires
			return out
		}
		a.Start()
		a.EmitToolCall("read_file", "a.txt")
		sleep(2 * time.Second)
		busy = true
		s.publish(t, about("ask#ask/0", "May I?", time.Now().Add(5*time.Second)))
		a.Emit(bus.Event{Type: bus.TurnParked})
		sleep(20 * time.Second)
		wantShown(t, p, "1", "· read_file a.txt")
		busy = false
		s.publish(t, about("ask#ended/0", "May I? Nobody answered.", time.Time{}))
		s.publishAnswer(t, a, "I did not")
		sleep(time.Minute)
		wantShown(t, p, "1", "(The answer is below.)", "May I? Nobody answered.", "I did not")
		if got := s.lookup(t, "ask#ask/0").Parts[0]; got.State != channels.Failed || got.Code != "expired" {
			t.Errorf("the question is %+v", got)
		}
	})
}

// An answer does not wait forever for the withdrawal of its draft.
func TestADraftThatCanNeverBeWithdrawnStays(t *testing.T) {
	refuse, edits := false, 0
	setup := func(p *channelstest.EditingChannel) {
		p.OnEdit = func(string) error {
			if !refuse {
				return nil
			}
			if edits++; edits%2 == 1 {
				return &channels.SendError{Fault: channels.Rejected, Code: "msg_too_long"}
			}
			return &channels.SendError{Fault: channels.Retry, Code: "internal_error"}
		}
	}
	withDrafts(t, setup, func(t *testing.T, s *testStage, p *channelstest.EditingChannel) {
		a := s.Speaker("t", "1")
		a.Start()
		a.EmitText("The beginning of")
		sleep(2 * time.Second)
		refuse = true
		reply := a.Reply("The beginning of an answer")
		reply.At = time.Now()
		s.publish(t, reply)
		sleep(25 * time.Hour)
		if shown := p.Shown("1"); len(shown) != 2 || shown[1] != "The beginning of an answer" {
			t.Errorf("the chat shows %q", shown)
		}
	})
}

func TestATextTooLongForAnEditIsPostedUnderTheEarlierOne(t *testing.T) {
	setup := func(p *channelstest.EditingChannel) { p.ChannelLimits.EditBytes = 100 }
	withEditing(t, setup, func(t *testing.T, s *testStage, p *channelstest.EditingChannel) {
		wide := strings.Repeat("長", 60)
		s.publish(t, subjectMessage("a", "1", "disk", "filling"), subjectMessage("b", "1", "disk", wide), subjectMessage("c", "1", "disk", "resolved"))
		synctest.Wait()
		wantShown(t, p, "1", "resolved", wide+" under id1")
	})
}

func TestADraftIsReplacedByACaption(t *testing.T) {
	withDrafts(t, nil, func(t *testing.T, s *testStage, p *channelstest.EditingChannel) {
		a := s.Speaker("t", "1")
		a.Start()
		a.EmitText("Here it is")
		sleep(2 * time.Second)
		out := a.Reply("Here it is.")
		out.File = &bus.File{Name: "a.txt", Data: []byte("a")}
		s.publish(t, out)
		sleep(time.Minute)
		wantShown(t, p, "1", "Here it is.", " with a.txt")
	})
}
