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

// narrow is a platform on which edits are bound in bytes, posts in characters.
func narrow(p *channelstest.EditingChannel) { p.Offers.EditBytes = 1000 }

const sentence = "これは長い答えの一文です。" // 13 characters, 39 bytes

func TestADraftThatIsTooShortForTheAnswerBecomesItsFirstPart(t *testing.T) {
	drafting(t, narrow, func(t *testing.T, s *stage, p *channelstest.EditingChannel) {
		a := s.Speaker("t", "1")
		a.Start()
		a.Says(strings.Repeat(sentence, 3))
		lasts(2 * time.Second)
		whole := strings.Repeat(sentence, 70) // 910 characters
		s.answers(t, a, whole)
		lasts(time.Minute)
		shown := p.Shown("1")
		if len(shown) != 2 || strings.Join(shown, "") != whole {
			t.Errorf("the chat shows %d messages of %d characters", len(shown), len([]rune(strings.Join(shown, ""))))
		}
		if parts := s.state(t, "t#reply").Parts; len(parts) != 2 || parts[0].Edits == "" || parts[1].Edits != "" {
			t.Errorf("book: %+v", parts)
		}
	})
}

// What a release before planned may be too long, and the platform may refuse an
// edit for reasons of its own.
func TestADraftThatCannotBeReplacedIsTakenBack(t *testing.T) {
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
	drafting(t, setup, func(t *testing.T, s *stage, p *channelstest.EditingChannel) {
		a := s.Speaker("t", "1")
		a.Start()
		a.Says("The beginning of")
		lasts(2 * time.Second)
		refuse = true
		s.answers(t, a, "The beginning of an answer")
		lasts(time.Minute)
		wantShown(t, p, "1", "(The answer is below.)", "The beginning of an answer")
	})
}

func TestADraftThatCannotBeTakenBackNowIsTakenBackLater(t *testing.T) {
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
	drafting(t, setup, func(t *testing.T, s *stage, p *channelstest.EditingChannel) {
		a := s.Speaker("t", "1")
		a.Start()
		a.Says("The beginning of")
		lasts(2 * time.Second)
		long := &channels.SendError{Fault: channels.Rejected, Code: "msg_too_long"}
		faults = []*channels.SendError{long, {Fault: channels.Retry, Code: "http_503"}, long}
		s.answers(t, a, "The beginning of an answer")
		lasts(time.Minute)
		wantShown(t, p, "1", "(The answer is below.)", "The beginning of an answer")
	})
}

// A question that was to take a draft's place, and has expired before the platform took
// it, takes the draft away: nothing that is said later would replace it.
func TestADraftOfAQuestionThatHasExpiredIsTakenBack(t *testing.T) {
	busy := false
	setup := func(p *channelstest.EditingChannel) {
		p.OnEdit = func(string) error {
			if busy {
				return &channels.SendError{Fault: channels.Retry, Code: "http_503"}
			}
			return nil
		}
	}
	drafting(t, setup, func(t *testing.T, s *stage, p *channelstest.EditingChannel) {
		a := s.Speaker("t", "1")
		about := func(id, text string, expires time.Time) bus.Outbound {
			out := a.Reply(text)
			out.ID, out.Subject, out.Expires = id, "ask", expires
			return out
		}
		a.Start()
		a.Runs("read_file", "a.txt")
		lasts(2 * time.Second)
		busy = true
		s.post(t, about("ask#ask/0", "May I?", time.Now().Add(5*time.Second)))
		a.Emit(bus.Event{Type: bus.TurnParked})
		lasts(20 * time.Second)
		wantShown(t, p, "1", "· read_file a.txt")
		busy = false
		s.post(t, about("ask#ended/0", "May I? Nobody answered.", time.Time{}))
		s.answers(t, a, "I did not")
		lasts(time.Minute)
		wantShown(t, p, "1", "(The answer is below.)", "May I? Nobody answered.", "I did not")
		if got := s.state(t, "ask#ask/0").Parts[0]; got.State != channels.Failed || got.Code != "expired" {
			t.Errorf("the question is %+v", got)
		}
	})
}

// An answer does not wait for ever for its draft to be taken back.
func TestADraftThatCanNeverBeTakenBackIsLeft(t *testing.T) {
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
	drafting(t, setup, func(t *testing.T, s *stage, p *channelstest.EditingChannel) {
		a := s.Speaker("t", "1")
		a.Start()
		a.Says("The beginning of")
		lasts(2 * time.Second)
		refuse = true
		reply := a.Reply("The beginning of an answer")
		reply.At = time.Now()
		s.post(t, reply)
		lasts(25 * time.Hour)
		if shown := p.Shown("1"); len(shown) != 2 || shown[1] != "The beginning of an answer" {
			t.Errorf("the chat shows %q", shown)
		}
	})
}

func TestATextTooLongForAnEditGoesUnderTheEarlier(t *testing.T) {
	setup := func(p *channelstest.EditingChannel) { p.Offers.EditBytes = 100 }
	editing(t, setup, func(t *testing.T, s *stage, p *channelstest.EditingChannel) {
		wide := strings.Repeat("長", 60)
		s.post(t, news("a", "1", "disk", "filling"), news("b", "1", "disk", wide), news("c", "1", "disk", "resolved"))
		synctest.Wait()
		wantShown(t, p, "1", "resolved", wide+" under id1")
	})
}

func TestADraftDoesNotStandBesideAFile(t *testing.T) {
	drafting(t, nil, func(t *testing.T, s *stage, p *channelstest.EditingChannel) {
		a := s.Speaker("t", "1")
		a.Start()
		a.Says("Here it is")
		lasts(2 * time.Second)
		out := a.Reply("Here it is.")
		out.File = &bus.File{Name: "a.txt", Data: []byte("a")}
		s.post(t, out)
		lasts(time.Minute)
		wantShown(t, p, "1", "Here it is.", " with a.txt")
	})
}
