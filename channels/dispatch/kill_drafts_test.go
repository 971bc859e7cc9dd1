package dispatch_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/dispatch"
	"parley/channels/stagetest"
)

// envKillDrafts is set in the environment of a child process that shows drafts.
const envKillDrafts = "CHANNELS_KILL_DRAFTS"

// A draftFilePlatform is a subjectFilePlatform that shows drafts.
type draftFilePlatform struct{ subjectFilePlatform }

func (p draftFilePlatform) Limits() channels.Limits {
	l := p.subjectFilePlatform.Limits()
	l.DraftEvery = time.Hour
	return l
}

// A findingDraftFilePlatform can also find parts that were sent.
type findingDraftFilePlatform struct {
	draftFilePlatform
	finder findingFilePlatform
}

func (p findingDraftFilePlatform) FindSent(ctx context.Context, to bus.Address, part channels.Part) (string, bool, error) {
	return p.finder.FindSent(ctx, to, part)
}

// draftUntilKilled emits text until the draft is shown, then ends the turn and waits to be killed.
func draftUntilKilled(t *testing.T, s *testStage, ch channels.Channel, a *stagetest.Speaker, point func(string)) {
	t.Helper()
	drafted := make(chan struct{}, 1)
	r := startDispatcher(t, &dispatch.Dispatcher{
		Name: "c", Channel: ch, Bus: s.Bus, Book: s.Book, Drafts: s.Book, Log: s.Logger(),
		Point: func(name string) {
			point(name)
			if name == "draft:marked" {
				drafted <- struct{}{}
			}
		},
	})
	again := time.NewTicker(20 * time.Millisecond) // in case nobody is listening yet
	defer again.Stop()
	for {
		select {
		case <-again.C:
			a.EmitText("Words ")
			continue
		case <-drafted:
			s.publish(t, a.Reply("The answer"))
		}
		t.Error(<-r.ended)
		return
	}
}

func TestKillPointsOfDrafts(t *testing.T) {
	const draft, posted, replaced = "t#draft/0", "t#reply/0", "t#reply/0 replaces t#draft/0"
	for _, c := range []struct {
		point   string
		tracing bool
		want    string // what arrives
		state   string // the state of the draft in the book
	}{
		{"draft:begun", false, posted, channels.OutcomeUnknown},
		{"draft:begun", true, posted, channels.Failed},
		{"draft:sent", false, draft + "|" + posted, channels.OutcomeUnknown},
		{"draft:sent", true, draft + "|" + replaced, channels.Sent},
		{"draft:marked", false, draft + "|" + replaced, channels.Sent},
		{"send:begun", false, draft + "|" + replaced, channels.Sent},
		{"send:sent", false, draft + "|" + replaced + "|" + replaced, channels.Sent}, // an edit may be repeated
		{"send:marked", false, draft + "|" + replaced, channels.Sent},
		{"draft:closed", false, draft + "|" + replaced, channels.Sent},
		{"send:settled", false, draft + "|" + replaced, channels.Sent},
	} {
		name := c.point
		if c.tracing {
			name += " tracing"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			killChild(t, envKillDir+"="+dir, envKillAt+"="+c.point+" 1", envKillDrafts+"=1")
			s := newStage(t, dir, bus.Caps{})
			defer s.Close()
			file := draftFilePlatform{subjectFilePlatform{filePlatform{filepath.Join(dir, "sent")}}}
			var ch channels.Channel = file
			if c.tracing {
				ch = findingDraftFilePlatform{file, findingFilePlatform{file.filePlatform, t}}
			}
			s.publish(t, s.Speaker("t", "1").Reply("The answer")) // the answer may have been published already
			dispatchUntilEmpty(t, s, ch, nil)
			if got := strings.Join(file.readArrived(t)["1"], "|"); got != c.want {
				t.Errorf("arrived %q, want %q", got, c.want)
			}
			if part := s.lookupDraft(t, "t"); part.State != c.state {
				t.Errorf("book: %+v, want it %s", part, c.state)
			}
			if part := s.lookup(t, "t#reply").Parts[0]; part.State != channels.Sent || part.Interrupted != 0 {
				t.Errorf("book: %+v", part)
			}
		})
	}
}
