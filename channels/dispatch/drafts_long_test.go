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
		a := s.speaker("t", "1")
		a.start()
		a.says(strings.Repeat(sentence, 3))
		lasts(2 * time.Second)
		whole := strings.Repeat(sentence, 70) // 910 characters
		a.answers(t, whole)
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
		a := s.speaker("t", "1")
		a.start()
		a.says("The beginning of")
		lasts(2 * time.Second)
		refuse = true
		a.answers(t, "The beginning of an answer")
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
		a := s.speaker("t", "1")
		a.start()
		a.says("The beginning of")
		lasts(2 * time.Second)
		long := &channels.SendError{Fault: channels.Rejected, Code: "msg_too_long"}
		faults = []*channels.SendError{long, {Fault: channels.Retry, Code: "http_503"}, long}
		a.answers(t, "The beginning of an answer")
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
		a := s.speaker("t", "1")
		about := func(id, text string, expires time.Time) bus.Outbound {
			out := a.reply(text)
			out.ID, out.Subject, out.Expires = id, "ask", expires
			return out
		}
		a.start()
		a.runs("read_file", "a.txt")
		lasts(2 * time.Second)
		busy = true
		s.post(t, about("ask#ask/0", "May I?", time.Now().Add(5*time.Second)))
		a.emit(bus.Event{Type: bus.TurnParked})
		lasts(20 * time.Second)
		wantShown(t, p, "1", "· read_file a.txt")
		busy = false
		s.post(t, about("ask#ended/0", "May I? Nobody answered.", time.Time{}))
		a.answers(t, "I did not")
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
		a := s.speaker("t", "1")
		a.start()
		a.says("The beginning of")
		lasts(2 * time.Second)
		refuse = true
		reply := a.reply("The beginning of an answer")
		reply.At = time.Now()
		s.post(t, reply)
		lasts(25 * time.Hour)
		if shown := p.Shown("1"); len(shown) != 2 || shown[1] != "The beginning of an answer" {
			t.Errorf("the chat shows %q", shown)
		}
	})
}

func TestADraftLongerThanAMessageShowsThatItGoesOn(t *testing.T) {
	drafting(t, narrow, func(t *testing.T, s *stage, p *channelstest.EditingChannel) {
		a := s.speaker("t", "1")
		a.start()
		a.says(strings.Repeat(sentence, 2))
		seen := map[string]bool{}
		for range 40 {
			a.goesOn(strings.Repeat(sentence, 50))
			lasts(2 * draftEvery)
			shown := p.Shown("1")
			if len(shown) != 1 || len(shown[0]) > 1000 || !strings.Contains(shown[0], " characters so far") {
				t.Fatalf("the chat shows %q", shown)
			}
			seen[shown[0]] = true
		}
		if len(seen) != 40 {
			t.Errorf("%d drafts were seen in 40 steps of the answer", len(seen))
		}
	})
}

// Where there is no room to say that an answer was stopped, its draft is left as
// it is, and left alone.
func TestADraftThatHasNoRoomIsOverWhenItsTurnIsStopped(t *testing.T) {
	short := func(p *channelstest.EditingChannel) { p.Offers.Length = 100 }
	drafting(t, short, func(t *testing.T, s *stage, p *channelstest.EditingChannel) {
		a := s.speaker("t", "1")
		a.start()
		a.says(strings.Repeat("word ", 50))
		lasts(time.Minute)
		a.emit(bus.Event{Type: bus.TurnError, Error: &bus.Failure{Code: "cancelled"}})
		lasts(time.Minute)
		if parts := s.state(t, "t#draft").Parts; len(parts) != 1 || parts[0].State != channels.Sent {
			t.Errorf("the draft is still open: %+v", parts)
		}
		if len(p.Shown("1")) != 1 {
			t.Errorf("the chat shows %q", p.Shown("1"))
		}
	})
}

// Of an answer that is stopped the whole will not come.
func TestALongDraftOfATurnThatWasStopped(t *testing.T) {
	drafting(t, narrow, func(t *testing.T, s *stage, p *channelstest.EditingChannel) {
		a := s.speaker("t", "1")
		a.start()
		a.says(strings.Repeat(sentence, 50))
		lasts(2 * draftEvery)
		a.emit(bus.Event{Type: bus.TurnError, Error: &bus.Failure{Code: "cancelled"}})
		lasts(time.Minute)
		shown := p.Shown("1")
		if len(shown) != 1 || !strings.Contains(shown[0], "Stopped after 650 characters") || strings.Contains(shown[0], "so far") {
			t.Errorf("the chat shows %q", shown)
		}
		if parts := s.state(t, "t#draft").Parts; len(parts) != 1 || parts[0].State != channels.Sent {
			t.Errorf("the draft is still open: %+v", parts)
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
		a := s.speaker("t", "1")
		a.start()
		a.says("Here it is")
		lasts(2 * time.Second)
		out := a.reply("Here it is.")
		out.File = &bus.File{Name: "a.txt", Data: []byte("a")}
		s.post(t, out)
		lasts(time.Minute)
		wantShown(t, p, "1", "Here it is.", " with a.txt")
	})
}
