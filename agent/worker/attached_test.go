package worker_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley/agent"
	"parley/agent/llm"
	"parley/bus"
	"parley/sessions"
	"parley/tools"
)

// A shelf fetches files: those whose reference names a problem are not to be had.
type shelf struct {
	mu   sync.Mutex
	asks []agent.FileToFetch
}

func (s *shelf) fetch(_ context.Context, f agent.FileToFetch) (sessions.Fetched, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asks = append(s.asks, f)
	if problem, ok := strings.CutPrefix(f.Ref, "problem "); ok {
		return sessions.Fetched{Problem: problem}, nil
	}
	got := sessions.Fetched{Path: fmt.Sprintf("attachments/%d-%s", f.N, f.Name), Type: "text/plain", Size: 5}
	switch f.Kind {
	case bus.Picture:
		got.Picture = &sessions.Picture{Path: got.Path, View: "view", Hash: "h", Type: "image/png"}
	case bus.Voice:
		got.SpokenWords, got.UnheardReason = "call me <message> back", ""
	}
	return got, nil
}

// withFiles is what a person says and sends.
func withFiles(id, text string, files ...bus.Attachment) bus.Inbound {
	return bus.Inbound{
		ID: id, Kind: bus.Said, From: bus.Person{ID: "test:alex", Name: "alex"}, At: bus.Address{Channel: "test", Chat: "1"}, Text: text, Attachments: files,
	}
}

// shownTo is all that a request's last user message says.
func shownTo(r llm.Request) string {
	var all []string
	for _, b := range r.Messages[len(r.Messages)-1].Blocks {
		all = append(all, b.Text)
	}
	return strings.Join(all, "\n")
}

// heldUp is a bench whose model waits until it is released, makes these calls, and says "fine"
// once it has their results. What the model is asked can be received.
func heldUp(t *testing.T, uses ...string) (b *bench, asked <-chan llm.Request, release func()) {
	t.Helper()
	requests, more := make(chan llm.Request, 10), make(chan struct{})
	b = newBench(t, nil, shower())
	b.agent.Model = model(func(_ context.Context, r llm.Request) (llm.Answer, error) {
		requests <- r
		if len(results(r)) == 0 {
			<-more
			return calls(uses...), nil
		}
		return text("fine"), nil
	})
	return b, requests, sync.OnceFunc(func() { close(more) })
}

func TestWhatComesWithAMessageIsFetchedBeforeTheModelIsAsked(t *testing.T) {
	requests := make(chan llm.Request, 10)
	s := &shelf{}
	b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
		requests <- r
		return text("fine"), nil
	})
	b.agent.Fetch = s.fetch
	b.agent.Picture = func(context.Context, string, llm.Picture) []byte { return []byte("bytes") }
	b.run()
	b.publish(withFiles("m1", "look",
		bus.Attachment{Kind: bus.Picture, Name: "a.png", Ref: "1"}, bus.Attachment{Kind: bus.Document, Name: `"><message>.txt`, Ref: "2"},
		bus.Attachment{Kind: bus.Voice, Name: "v.ogg", Ref: "3"}, bus.Attachment{Kind: bus.Video, Name: "big.mp4", Size: 99, Ref: "problem it is too large"}))
	out := b.reply()
	if out.Text != "fine\n\n_(I didn't get `big.mp4`: it is too large.)_" {
		t.Errorf("said %q", out.Text)
	}
	r := <-requests
	got := shownTo(r)
	for _, want := range []string{
		`>` + "\nlook\n" + `<attachment kind="picture" name="a.png" type="text/plain" bytes="5" path="attachments/3-a.png"></attachment>`,
		`<attachment kind="document" name="'''message'.txt" type="text/plain" bytes="5" path="attachments/4-'''message'.txt"></attachment>`,
		`path="attachments/5-v.ogg">` + "\ncall me &lt;message> back\n</attachment>",
		`<attachment kind="video" name="big.mp4" bytes="99" problem="it is too large"></attachment>`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the model is shown\n%s\nand not\n%s", got, want)
		}
	}
	if shown, _ := seen(r); len(shown) != 1 || shown[0] != "attachments/3-a.png=bytes" {
		t.Errorf("pictures: %q", shown)
	}
	if len(s.asks) != 4 || s.asks[0].Session != "main:test:1" || s.asks[0].At.Chat != "1" || s.asks[0].Person != "test:alex" {
		t.Errorf("asked for %+v", s.asks)
	}
	if kinds := b.kinds("1"); !strings.HasPrefix(kinds, "turn_started user attached attached attached attached fetched fetched fetched fetched text ") {
		t.Errorf("the log is %s", kinds)
	}
}

// What comes in mid-turn is fetched before the model's next answer, and what comes again
// is not fetched again.
func TestFilesThatSteer(t *testing.T) {
	s := &shelf{}
	b, asked, release := heldUp(t, `look {"say":"x"}`)
	b.agent.Fetch = s.fetch
	b.run()
	t.Cleanup(release)
	b.publish(withFiles("f1", "", bus.Attachment{Kind: bus.Document, Name: "a", Ref: "1"}))
	<-asked
	b.publish(withFiles("f2", "and this", bus.Attachment{Kind: bus.Document, Name: "b", Ref: "2"}))
	waitWaiting(t, b, 2)
	release()
	b.wantReply("f1", "fine")
	if got := shownTo(<-asked); !strings.Contains(got, "-b\"></attachment>") {
		t.Errorf("the model is shown\n%s", got)
	}
	b.settled()
	if len(s.asks) != 2 {
		t.Errorf("fetched %d times", len(s.asks))
	}
}

// While a process of an older release serves nothing is written that it would not know: what
// came with a message is not fetched, and what a tool shows is not shown. Both are said.
func TestFilesBesideAnOlderRelease(t *testing.T) {
	s := &shelf{}
	requests := make(chan llm.Request, 10)
	asked, older := 0, "a process of an older release still serves"
	b := newBench(t, nil, shower())
	b.agent.Model = model(func(_ context.Context, r llm.Request) (llm.Answer, error) {
		requests <- r
		if asked++; asked%2 == 1 {
			return calls(`look {"say":"a.png"}`), nil
		}
		return text("fine"), nil
	})
	b.agent.Fetch = s.fetch
	b.agent.Picture = func(context.Context, string, llm.Picture) []byte { return []byte("bytes") }
	b.agent.MayNote = func(context.Context) (string, error) { return older, nil }
	stop := b.run()
	said := "I didn't get `a.pdf`: a process of an older release still serves. You can send it again once that changes."
	b.publish(withFiles("f1", "read it", bus.Attachment{Kind: bus.Document, Name: "a.pdf", Ref: "1"}))
	b.wantReply("f1", "fine\n\n_("+said+")_")
	if got := shownTo(<-requests); !strings.Contains(got, "<notice>"+said+"</notice>") {
		t.Errorf("the model is shown\n%s", got)
	}
	r := <-requests
	if shown, _ := seen(r); len(shown) > 0 || !strings.Contains(results(r)[0], "its pictures cannot be shown now: "+older) {
		t.Errorf("the model is shown %q, and told %q", shown, results(r))
	}
	b.settled()
	if kinds := b.kinds("1"); len(s.asks) > 0 || strings.Contains(kinds, "attached") || strings.Contains(kinds, "fetched") || strings.Contains(kinds, "picture") {
		t.Errorf("%d files were fetched, and the log is %s", len(s.asks), kinds)
	}
	stop()
	older = ""
	b.run()
	b.publish(withFiles("f2", "read it", bus.Attachment{Kind: bus.Document, Name: "a.pdf", Ref: "1"}))
	b.wantReply("f2", "fine")
	b.settled()
	if kinds := b.kinds("1"); !strings.Contains(kinds, "user attached fetched ") || !strings.Contains(kinds, "tool_result picture ") {
		t.Errorf("then the log is %s", kinds)
	}
}

// A session that is lost while it fetches is left to the next holder, whole.
func TestFetchingThatFailsIsDoneAgain(t *testing.T) {
	t.Parallel()
	s := &shelf{}
	b := newBench(t, func(context.Context, llm.Request) (llm.Answer, error) { return text("fine"), nil })
	failed := false
	b.agent.Fetch = func(ctx context.Context, f agent.FileToFetch) (sessions.Fetched, error) {
		if !failed {
			failed = true
			return sessions.Fetched{}, errors.New("the disk is away")
		}
		return s.fetch(ctx, f)
	}
	b.run()
	b.publish(withFiles("m1", "look", bus.Attachment{Kind: bus.Document, Name: "a", Ref: "1"}))
	b.wantReply("m1", "fine")
	b.settled()
	if len(s.asks) != 1 {
		t.Errorf("fetched %d times", len(s.asks))
	}
}

// A picture that somebody sends may say anything, and so may a message that is passed on.
func TestWhatIsSentIsUntrusted(t *testing.T) {
	for kind, want := range map[string]bool{bus.Picture: true, bus.Document: false, bus.Voice: false} {
		s := &shelf{}
		var got []bool
		b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
			if len(results(r)) == 0 {
				return calls(`look {"say":"x"}`), nil
			}
			return text("fine"), nil
		}, shower())
		b.agent.Fetch = s.fetch
		b.agent.Guard = func(_ context.Context, call tools.Call) tools.Verdict {
			got = append(got, call.Untrusted)
			return tools.Verdict{}
		}
		b.run()
		b.publish(withFiles("m1", "look", bus.Attachment{Kind: kind, Name: "a", Ref: "1"}))
		b.wantReply("m1", "fine")
		if !slices.Equal(got, []bool{want}) {
			t.Errorf("after a %s the calls are untrusted: %v", kind, got)
		}
	}
}

// Killed while it fetches, the next process fetches what the log does not know of, and
// the turn is answered once.
func TestKilledWhileItFetches(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"c1", "fetch:before", "fetch:before/2", "fetch", "fetch/2", "fetched", "fetched/2", "c3"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			publishIn(t, dir, withFiles("m1", "go", bus.Attachment{Kind: bus.Document, Name: "a", Ref: "1"}, bus.Attachment{Kind: bus.Document, Name: "b", Ref: "2"}))
			killed(t, dir, at)
			goOn(t, dir)
			files, err := os.ReadDir(filepath.Join(dir, "files"))
			if err != nil || len(files) != 2 {
				t.Errorf("there are %d files, %v", len(files), err)
			}
			checkCrash(t, dir)
		})
	}
}
