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

// killDrafts is set for a child that drafts.
const killDrafts = "CHANNELS_KILL_DRAFTS"

// A draftFile is a newsFile that asks for drafts.
type draftFile struct{ newsFile }

func (p draftFile) Limits() channels.Limits {
	l := p.newsFile.Limits()
	l.DraftEvery = time.Hour
	return l
}

// A tracingDraftFile can be asked what has arrived.
type tracingDraftFile struct {
	draftFile
	trace tracingFile
}

func (p tracingDraftFile) FindSent(ctx context.Context, to bus.Address, part channels.Part) (string, bool, error) {
	return p.trace.FindSent(ctx, to, part)
}

// draftChild makes an answer until it dies: it speaks until the draft is there,
// and then ends the turn.
func draftChild(t *testing.T, s *stage, ch channels.Channel, a *stagetest.Speaker, point func(string)) {
	t.Helper()
	drafted := make(chan struct{}, 1)
	r := start(t, &dispatch.Dispatcher{
		Name: "c", Channel: ch, Bus: s.Bus, Book: s.Book, Drafts: s.Book, Log: s.Logger(),
		Point: func(name string) {
			point(name)
			if name == "draft:marked" {
				drafted <- struct{}{}
			}
		},
	})
	again := time.NewTicker(20 * time.Millisecond) // nobody may be listening yet
	defer again.Stop()
	for {
		select {
		case <-again.C:
			a.Says("Words ")
			continue
		case <-drafted:
			s.post(t, a.Reply("The answer"))
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
		state   string // of the draft in the book
	}{
		{"draft:begun", false, posted, channels.Unsure},
		{"draft:begun", true, posted, channels.Failed},
		{"draft:sent", false, draft + "|" + posted, channels.Unsure},
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
			killChild(t, killDir+"="+dir, killAt+"="+c.point+" 1", killDrafts+"=1")
			s := setStage(t, dir, bus.Caps{})
			defer s.Close()
			file := draftFile{newsFile{filePlatform{filepath.Join(dir, "sent")}}}
			var ch channels.Channel = file
			if c.tracing {
				ch = tracingDraftFile{file, tracingFile{file.filePlatform, t}}
			}
			s.post(t, s.Speaker("t", "1").Reply("The answer")) // as it may have been already
			drain(t, s, ch, nil)
			if got := strings.Join(file.arrived(t)["1"], "|"); got != c.want {
				t.Errorf("arrived %q, want %q", got, c.want)
			}
			if part := s.draft(t, "t"); part.State != c.state {
				t.Errorf("book: %+v, want it %s", part, c.state)
			}
			if part := s.state(t, "t#reply").Parts[0]; part.State != channels.Sent || part.Interrupted != 0 {
				t.Errorf("book: %+v", part)
			}
		})
	}
}
