package dispatch_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/channelstest"
	"parley/channels/dispatch"
)

// A previewing channel shows answers by previews in every chat but "edit".
type previewing struct {
	*channelstest.EditingChannel

	mu    sync.Mutex
	shown []preview
	err   error
}

type preview struct {
	turn, text string
	at         time.Time
}

const previewFades = 30 * time.Second

func (p *previewing) Previews(chat string) time.Duration {
	if chat == "edit" {
		return 0
	}
	return time.Second
}

func (p *previewing) Preview(_ context.Context, _ bus.Address, turn string, part channels.Part) (time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return 0, p.err
	}
	p.shown = append(p.shown, preview{turn, part.Text, time.Now()})
	return previewFades, nil
}

func (p *previewing) all() []preview {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]preview(nil), p.shown...)
}

func (p *previewing) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}

func inPreviews(t *testing.T, stream string, run func(*testing.T, *stage, *previewing)) {
	t.Helper()
	var p *previewing
	setup := func(s *stage, d *dispatch.Dispatcher) {
		s.Platform.Offers.DraftEvery, s.Platform.Offers.Length = draftEvery, 1000
		p = &previewing{EditingChannel: &channelstest.EditingChannel{MemoryChannel: s.Platform}}
		d.Channel, d.Policy.Stream = p, stream
	}
	inDispatch(t, setup, func(t *testing.T, s *stage, _ *running) {
		synctest.Wait()
		run(t, s, p)
	})
}

// An answer is shown by previews, which are not messages: the answer is the only one.
func TestPreviewsGrowUntilTheAnswerIsSent(t *testing.T) {
	inPreviews(t, "", func(t *testing.T, s *stage, p *previewing) {
		a := s.Speaker("t", "1")
		a.Start()
		a.Says("Words ")
		for range 50 {
			a.GoesOn("x ")
			lasts(100 * time.Millisecond)
		}
		shown := p.all()
		if len(shown) < 4 || len(shown) > 6 {
			t.Fatalf("%d previews in five seconds", len(shown))
		}
		for i, later := range shown[1:] {
			if gap := later.at.Sub(shown[i].at); gap < time.Second || len(later.text) <= len(shown[i].text) || later.turn != "t" {
				t.Errorf("after %v: %+v", gap, later)
			}
		}
		a.Runs("exec_shell", "make")
		lasts(2 * time.Second)
		if last := p.all(); !strings.Contains(last[len(last)-1].text, "make") {
			t.Errorf("while a tool runs it shows %q", last[len(last)-1].text)
		}
		s.answers(t, a, "The answer")
		known := len(p.all())
		lasts(time.Minute)
		wantTexts(t, s, "1", "The answer")
		s.noDraft(t, "t")
		if now := p.all(); len(now) != known {
			t.Errorf("previews go on after the answer: %+v", now[known:])
		}
	})
}

// A preview fades, so it is shown again while nothing new is said, and no longer than
// the turn runs.
func TestAPreviewIsShownAgainBeforeItFades(t *testing.T) {
	inPreviews(t, "", func(t *testing.T, s *stage, p *previewing) {
		a := s.Speaker("t", "1")
		a.Start()
		a.Says("Thinking hard")
		lasts(100 * time.Second)
		shown := p.all()
		if len(shown) < 5 || len(shown) > 9 {
			t.Fatalf("%d previews in 100 seconds", len(shown))
		}
		for i, later := range shown[1:] {
			if gap := later.at.Sub(shown[i].at); gap >= previewFades {
				t.Errorf("nothing was shown for %v", gap)
			}
		}
		a.Emit(bus.Event{Type: bus.TurnParked, Causes: []string{"t"}})
		lasts(time.Minute)
		if now := p.all(); len(now) != len(shown) {
			t.Errorf("a turn that waits shows %+v", now[len(shown):])
		}
	})
}

// Where the platform takes no previews the answer is shown as a message that is edited,
// and a platform that is away is asked again.
func TestWhatComesOfPreviewsThatFail(t *testing.T) {
	inPreviews(t, "", func(t *testing.T, s *stage, p *previewing) {
		p.fail(&channels.SendError{Fault: channels.Unknown, Code: "cut_off", Err: errors.New("gone")})
		a := s.Speaker("t", "1")
		a.Start()
		a.Says("One ")
		lasts(5 * time.Second)
		p.fail(nil)
		lasts(5 * time.Second)
		if len(p.all()) == 0 || len(s.Platform.Sent()) != 0 {
			t.Errorf("after an outage: %+v and %+v", p.all(), s.Platform.Sent())
		}
		p.fail(&channels.SendError{Fault: channels.Rejected, Code: "no_previews", Err: errors.New("none here")})
		a.GoesOn("two")
		lasts(5 * time.Second)
		if sent := s.Platform.Sent(); len(sent) != 1 || !strings.HasPrefix(sent[0].Part.Text, "One two") {
			t.Errorf("instead of previews: %+v", sent)
		}
		s.answers(t, a, "The answer")
		lasts(time.Minute)
		if part := s.state(t, "t#reply").Parts[0]; part.State != channels.Sent || part.Edits == "" {
			t.Errorf("the answer is %+v", part)
		}
	})
}

func TestHowAnswersAreShownIsASetting(t *testing.T) {
	for _, c := range []struct {
		stream, chat     string
		previews, drafts bool
	}{
		{"", "1", true, false},
		{"", "edit", false, true},
		{dispatch.StreamEdit, "1", false, true},
		{dispatch.StreamOff, "1", false, false},
		{dispatch.StreamOff, "edit", false, false},
	} {
		inPreviews(t, c.stream, func(t *testing.T, s *stage, p *previewing) {
			a := s.Speaker("t", c.chat)
			a.Start()
			a.Says("Words")
			lasts(5 * time.Second)
			if got := len(p.all()) > 0; got != c.previews {
				t.Errorf("%q in %s: previews %t", c.stream, c.chat, got)
			}
			if got := len(s.Platform.Sent()) > 0; got != c.drafts {
				t.Errorf("%q in %s: drafts %t", c.stream, c.chat, got)
			}
			s.answers(t, a, "The answer")
			lasts(time.Minute)
		})
	}
}

// What a preview has shown of a turn that is stopped stays, as one message: the preview alone would
// fade. Where nothing was said yet, nothing is posted.
func TestWhatAPreviewHasShownBeforeAStopStays(t *testing.T) {
	inPreviews(t, "", func(t *testing.T, s *stage, p *previewing) {
		said, silent := s.Speaker("said", "1"), s.Speaker("silent", "2")
		said.Start()
		silent.Start()
		said.Says("Half of it")
		silent.Runs("grep", "x")
		lasts(3 * time.Second)
		stopped := bus.Event{Type: bus.TurnError, Error: &bus.Failure{Code: "cancelled"}}
		said.Emit(stopped)
		silent.Emit(stopped)
		lasts(time.Minute)
		wantTexts(t, s, "1", "Half of it\n\n(Stopped.)")
		wantTexts(t, s, "2")
		if known := len(p.all()); known == 0 {
			t.Error("nothing was previewed")
		}
		known, err := s.Book.Drafts(t.Context(), "test")
		if err != nil || len(known) != 0 {
			t.Errorf("drafts that somebody would still replace: %+v, %v", known, err)
		}
	})
}
