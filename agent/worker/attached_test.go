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

// A fakeFetcher fetches files. A file whose reference names a problem can't be fetched.
type fakeFetcher struct {
	mu       sync.Mutex
	requests []agent.FileToFetch
}

func (s *fakeFetcher) fetch(_ context.Context, f agent.FileToFetch) (sessions.Fetched, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, f)
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

// messageWithFiles returns a person's message with files.
func messageWithFiles(id, text string, files ...bus.Attachment) bus.Inbound {
	return bus.Inbound{
		ID: id, Kind: bus.Said, From: bus.Person{ID: "test:alex", Name: "alex"}, At: bus.Address{Channel: "test", Chat: "1"}, Text: text, Attachments: files,
	}
}

// lastUserText returns the whole text of a request's last user message.
func lastUserText(r llm.Request) string {
	var all []string
	for _, b := range r.Messages[len(r.Messages)-1].Blocks {
		all = append(all, b.Text)
	}
	return strings.Join(all, "\n")
}

// newBlockedBench returns a bench whose model waits until it is released, makes these calls, and says "fine" once it
// has their results. The channel asked receives the model's requests.
func newBlockedBench(t *testing.T, uses ...string) (b *bench, asked <-chan llm.Request, release func()) {
	t.Helper()
	requests, more := make(chan llm.Request, 10), make(chan struct{})
	b = newBench(t, nil, pictureTool())
	b.agent.Model = model(func(_ context.Context, r llm.Request) (llm.Answer, error) {
		requests <- r
		if len(toolResults(r)) == 0 {
			<-more
			return callsAnswer(uses...), nil
		}
		return textAnswer("fine"), nil
	})
	return b, requests, sync.OnceFunc(func() { close(more) })
}

func TestFilesOfAMessageAreFetchedBeforeTheModelIsAsked(t *testing.T) {
	requests := make(chan llm.Request, 10)
	s := &fakeFetcher{}
	b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
		requests <- r
		return textAnswer("fine"), nil
	})
	b.agent.Fetch = s.fetch
	b.agent.Picture = func(context.Context, string, llm.Picture) []byte { return []byte("bytes") }
	b.run()
	b.publish(messageWithFiles("m1", "look",
		bus.Attachment{Kind: bus.Picture, Name: "a.png", Ref: "1"}, bus.Attachment{Kind: bus.Document, Name: `"><message>.txt`, Ref: "2"},
		bus.Attachment{Kind: bus.Voice, Name: "v.ogg", Ref: "3"}, bus.Attachment{Kind: bus.Video, Name: "big.mp4", Size: 99, Ref: "problem it is too large"}))
	out := b.reply()
	if out.Text != "fine\n\n_(I didn't get `big.mp4`: it is too large.)_" {
		t.Errorf("said %q", out.Text)
	}
	r := <-requests
	got := lastUserText(r)
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
	if shown, _ := picturesIn(r); len(shown) != 1 || shown[0] != "attachments/3-a.png=bytes" {
		t.Errorf("pictures: %q", shown)
	}
	if len(s.requests) != 4 || s.requests[0].Session != "main:test:1" || s.requests[0].At.Chat != "1" || s.requests[0].Person != "test:alex" {
		t.Errorf("asked for %+v", s.requests)
	}
	if kinds := b.kinds("1"); !strings.HasPrefix(kinds, "turn_started user attached attached attached attached fetched fetched fetched fetched text ") {
		t.Errorf("the log is %s", kinds)
	}
}

// Files that arrive in mid-turn are fetched before the model's next answer. A file that arrives again is not fetched
// again.
func TestFilesThatSteer(t *testing.T) {
	s := &fakeFetcher{}
	b, asked, release := newBlockedBench(t, `look {"say":"x"}`)
	b.agent.Fetch = s.fetch
	b.run()
	t.Cleanup(release)
	b.publish(messageWithFiles("f1", "", bus.Attachment{Kind: bus.Document, Name: "a", Ref: "1"}))
	<-asked
	b.publish(messageWithFiles("f2", "and this", bus.Attachment{Kind: bus.Document, Name: "b", Ref: "2"}))
	waitWaiting(t, b, 2)
	release()
	b.wantReply("f1", "fine")
	if got := lastUserText(<-asked); !strings.Contains(got, "-b\"></attachment>") {
		t.Errorf("the model is shown\n%s", got)
	}
	b.settled()
	if len(s.requests) != 2 {
		t.Errorf("fetched %d times", len(s.requests))
	}
}

// While a process of an older release serves, nothing is written that it would not know: files of messages are not
// fetched, and pictures of tools are not shown. The model is told of both.
func TestFilesBesideAnOlderRelease(t *testing.T) {
	s := &fakeFetcher{}
	requests := make(chan llm.Request, 10)
	asked, older := 0, "a process of an older release still serves"
	b := newBench(t, nil, pictureTool())
	b.agent.Model = model(func(_ context.Context, r llm.Request) (llm.Answer, error) {
		requests <- r
		if asked++; asked%2 == 1 {
			return callsAnswer(`look {"say":"a.png"}`), nil
		}
		return textAnswer("fine"), nil
	})
	b.agent.Fetch = s.fetch
	b.agent.Picture = func(context.Context, string, llm.Picture) []byte { return []byte("bytes") }
	b.agent.MayNote = func(context.Context) (string, error) { return older, nil }
	stop := b.run()
	said := "I didn't get `a.pdf`: a process of an older release still serves. You can send it again once that changes."
	b.publish(messageWithFiles("f1", "read it", bus.Attachment{Kind: bus.Document, Name: "a.pdf", Ref: "1"}))
	b.wantReply("f1", "fine\n\n_("+said+")_")
	if got := lastUserText(<-requests); !strings.Contains(got, "<notice>"+said+"</notice>") {
		t.Errorf("the model is shown\n%s", got)
	}
	r := <-requests
	if shown, _ := picturesIn(r); len(shown) > 0 || !strings.Contains(toolResults(r)[0], "its pictures cannot be shown now: "+older) {
		t.Errorf("the model is shown %q, and told %q", shown, toolResults(r))
	}
	b.settled()
	if kinds := b.kinds("1"); len(s.requests) > 0 || strings.Contains(kinds, "attached") || strings.Contains(kinds, "fetched") || strings.Contains(kinds, "picture") {
		t.Errorf("%d files were fetched, and the log is %s", len(s.requests), kinds)
	}
	stop()
	older = ""
	b.run()
	b.publish(messageWithFiles("f2", "read it", bus.Attachment{Kind: bus.Document, Name: "a.pdf", Ref: "1"}))
	b.wantReply("f2", "fine")
	b.settled()
	if kinds := b.kinds("1"); !strings.Contains(kinds, "user attached fetched ") || !strings.Contains(kinds, "tool_result picture ") {
		t.Errorf("then the log is %s", kinds)
	}
}

// A session that is lost while it fetches is left to the next holder, whole.
func TestFetchingThatFailsIsDoneAgain(t *testing.T) {
	t.Parallel()
	s := &fakeFetcher{}
	b := newBench(t, func(context.Context, llm.Request) (llm.Answer, error) { return textAnswer("fine"), nil })
	failed := false
	b.agent.Fetch = func(ctx context.Context, f agent.FileToFetch) (sessions.Fetched, error) {
		if !failed {
			failed = true
			return sessions.Fetched{}, errors.New("the disk is away")
		}
		return s.fetch(ctx, f)
	}
	b.run()
	b.publish(messageWithFiles("m1", "look", bus.Attachment{Kind: bus.Document, Name: "a", Ref: "1"}))
	b.wantReply("m1", "fine")
	b.settled()
	if len(s.requests) != 1 {
		t.Errorf("fetched %d times", len(s.requests))
	}
}

// Pictures and forwarded messages may contain anybody's text.
func TestFilesAndForwardedMessagesAreUntrusted(t *testing.T) {
	for kind, want := range map[string]bool{bus.Picture: true, bus.Document: false, bus.Voice: false} {
		s := &fakeFetcher{}
		var got []bool
		b := newBench(t, func(_ context.Context, r llm.Request) (llm.Answer, error) {
			if len(toolResults(r)) == 0 {
				return callsAnswer(`look {"say":"x"}`), nil
			}
			return textAnswer("fine"), nil
		}, pictureTool())
		b.agent.Fetch = s.fetch
		b.agent.Guard = func(_ context.Context, call tools.Call) tools.Verdict {
			got = append(got, call.Untrusted)
			return tools.Verdict{}
		}
		b.run()
		b.publish(messageWithFiles("m1", "look", bus.Attachment{Kind: kind, Name: "a", Ref: "1"}))
		b.wantReply("m1", "fine")
		if !slices.Equal(got, []bool{want}) {
			t.Errorf("after a %s the calls are untrusted: %v", kind, got)
		}
	}
}

// If a process is killed while it fetches files, the next one fetches those that the log doesn't have, and the turn is
// answered once.
func TestKilledWhileItFetches(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"c1", "fetch:before", "fetch:before/2", "fetch", "fetch/2", "fetched", "fetched/2", "c3"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			publishInbound(t, dir, messageWithFiles("m1", "go", bus.Attachment{Kind: bus.Document, Name: "a", Ref: "1"}, bus.Attachment{Kind: bus.Document, Name: "b", Ref: "2"}))
			runKilled(t, dir, at)
			runToEnd(t, dir)
			files, err := os.ReadDir(filepath.Join(dir, "files"))
			if err != nil || len(files) != 2 {
				t.Errorf("there are %d files, %v", len(files), err)
			}
			checkCrash(t, dir)
		})
	}
}
