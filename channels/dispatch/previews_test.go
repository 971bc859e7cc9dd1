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

// A previewChannel shows unfinished answers by previews in every chat except "edit".
type previewChannel struct {
	*channelstest.EditingChannel

	mu    sync.Mutex
	shown []preview
	err   error
}

type preview struct {
	turn, text string
	at         time.Time
}

const previewDuration = 30 * time.Second

func (p *previewChannel) Previews(chat string) time.Duration {
	if chat == "edit" {
		return 0
	}
	return time.Second
}

func (p *previewChannel) Preview(_ context.Context, _ bus.Address, turn string, part channels.Part) (time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return 0, p.err
	}
	p.shown = append(p.shown, preview{turn, part.Text, time.Now()})
	return previewDuration, nil
}

func (p *previewChannel) shownPreviews() []preview {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]preview(nil), p.shown...)
}

func (p *previewChannel) setError(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}

func withPreviews(t *testing.T, stream string, run func(*testing.T, *testStage, *previewChannel)) {
	t.Helper()
	var p *previewChannel
	setup := func(s *testStage, d *dispatch.Dispatcher) {
		s.Platform.ChannelLimits.DraftEvery, s.Platform.ChannelLimits.Length = draftEvery, 1000
		p = &previewChannel{EditingChannel: &channelstest.EditingChannel{MemoryChannel: s.Platform}}
		d.Channel, d.Policy.Stream = p, stream
	}
	withDispatcher(t, setup, func(t *testing.T, s *testStage, _ *runningDispatcher) {
		synctest.Wait()
		run(t, s, p)
	})
}

// A preview is not a message, so the answer is the only message.
func TestPreviewsAreShownUntilTheAnswerIsSent(t *testing.T) {
	withPreviews(t, "", func(t *testing.T, s *testStage, p *previewChannel) {
		a := s.Speaker("t", "1")
		a.Start()
		a.EmitText("Words ")
		for range 50 {
			a.EmitMoreText("x ")
			sleep(100 * time.Millisecond)
		}
		shown := p.shownPreviews()
		if len(shown) < 4 || len(shown) > 6 {
			t.Fatalf("%d previews in five seconds", len(shown))
		}
		for i, later := range shown[1:] {
			if gap := later.at.Sub(shown[i].at); gap < time.Second || len(later.text) <= len(shown[i].text) || later.turn != "t" {
				t.Errorf("after %v: %+v", gap, later)
			}
		}
		a.EmitToolCall("exec_shell", "make")
		sleep(2 * time.Second)
		if last := p.shownPreviews(); !strings.Contains(last[len(last)-1].text, "make") {
			t.Errorf("while a tool runs it shows %q", last[len(last)-1].text)
		}
		s.publishAnswer(t, a, "The answer")
		known := len(p.shownPreviews())
		sleep(time.Minute)
		wantTexts(t, s, "1", "The answer")
		s.requireNoDraft(t, "t")
		if now := p.shownPreviews(); len(now) != known {
			t.Errorf("previews go on after the answer: %+v", now[known:])
		}
	})
}

// A preview fades, so it is shown again even if there is no new text, but only while the turn runs.
func TestAPreviewIsShownAgainBeforeItFades(t *testing.T) {
	withPreviews(t, "", func(t *testing.T, s *testStage, p *previewChannel) {
		a := s.Speaker("t", "1")
		a.Start()
		a.EmitText("Thinking hard")
		sleep(100 * time.Second)
		shown := p.shownPreviews()
		if len(shown) < 5 || len(shown) > 9 {
			t.Fatalf("%d previews in 100 seconds", len(shown))
		}
		for i, later := range shown[1:] {
			if gap := later.at.Sub(shown[i].at); gap >= previewDuration {
				t.Errorf("nothing was shown for %v", gap)
			}
		}
		a.Emit(bus.Event{Type: bus.TurnParked, Causes: []string{"t"}})
		sleep(time.Minute)
		if now := p.shownPreviews(); len(now) != len(shown) {
			t.Errorf("a turn that waits shows %+v", now[len(shown):])
		}
	})
}

// If the platform supports no previews, the answer is shown as a draft that is edited. If the platform is down,
// previews are tried again.
func TestFailingPreviews(t *testing.T) {
	withPreviews(t, "", func(t *testing.T, s *testStage, p *previewChannel) {
		p.setError(&channels.SendError{Fault: channels.Unknown, Code: "cut_off", Err: errors.New("gone")})
		a := s.Speaker("t", "1")
		a.Start()
		a.EmitText("One ")
		sleep(5 * time.Second)
		p.setError(nil)
		sleep(5 * time.Second)
		if len(p.shownPreviews()) == 0 || len(s.Platform.Sent()) != 0 {
			t.Errorf("after an outage: %+v and %+v", p.shownPreviews(), s.Platform.Sent())
		}
		p.setError(&channels.SendError{Fault: channels.Rejected, Code: "no_previews", Err: errors.New("none here")})
		a.EmitMoreText("two")
		sleep(5 * time.Second)
		if sent := s.Platform.Sent(); len(sent) != 1 || !strings.HasPrefix(sent[0].Part.Text, "One two") {
			t.Errorf("instead of previews: %+v", sent)
		}
		s.publishAnswer(t, a, "The answer")
		sleep(time.Minute)
		if part := s.lookup(t, "t#reply").Parts[0]; part.State != channels.Sent || part.Edits == "" {
			t.Errorf("the answer is %+v", part)
		}
	})
}

func TestTheSettingDecidesHowAnswersAreShown(t *testing.T) {
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
		withPreviews(t, c.stream, func(t *testing.T, s *testStage, p *previewChannel) {
			a := s.Speaker("t", c.chat)
			a.Start()
			a.EmitText("Words")
			sleep(5 * time.Second)
			if got := len(p.shownPreviews()) > 0; got != c.previews {
				t.Errorf("%q in %s: previews %t", c.stream, c.chat, got)
			}
			if got := len(s.Platform.Sent()) > 0; got != c.drafts {
				t.Errorf("%q in %s: drafts %t", c.stream, c.chat, got)
			}
			s.publishAnswer(t, a, "The answer")
			sleep(time.Minute)
		})
	}
}

// If a turn is stopped, the text that its preview showed is posted as a message, because the preview would
// fade. If it showed none, nothing is posted.
func TestTheTextOfAPreviewStaysAfterAStop(t *testing.T) {
	withPreviews(t, "", func(t *testing.T, s *testStage, p *previewChannel) {
		said, silent := s.Speaker("said", "1"), s.Speaker("silent", "2")
		said.Start()
		silent.Start()
		said.EmitText("Half of it")
		silent.EmitToolCall("grep", "x")
		sleep(3 * time.Second)
		stopped := bus.Event{Type: bus.TurnError, Error: &bus.Failure{Code: "cancelled"}}
		said.Emit(stopped)
		silent.Emit(stopped)
		sleep(time.Minute)
		wantTexts(t, s, "1", "Half of it\n\n(Stopped.)")
		wantTexts(t, s, "2")
		if known := len(p.shownPreviews()); known == 0 {
			t.Error("nothing was previewed")
		}
		known, err := s.Book.Drafts(t.Context(), "test")
		if err != nil || len(known) != 0 {
			t.Errorf("drafts that somebody would still replace: %+v, %v", known, err)
		}
	})
}
