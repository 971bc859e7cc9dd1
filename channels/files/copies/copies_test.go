package copies_test

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/channelstest"
	"parley/channels/files"
	"parley/channels/files/copies"
	"parley/cmd/parley/hometest"
	"parley/sessions/outgoing"
	"parley/sessions/workspace"
	"parley/tools"
)

const call = "turn#call"

func requireNoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newSession returns a session's directory, and the store for the files that it sends.
func newSession(t *testing.T) (h *hometest.Home, store copies.Files, dir *workspace.Dir, session string) {
	t.Helper()
	h = hometest.Open(t, t.TempDir())
	session = hometest.Key(t, "42")
	dir, err := h.Workspaces.Open(session)
	requireNoError(t, err)
	return h, copies.Files{Store: h.Outgoing}, dir, session
}

func TestKeepCopiesTheFileAsItWas(t *testing.T) {
	_, store, dir, session := newSession(t)
	requireNoError(t, dir.Write("charts/a.png", []byte("first")))
	requireNoError(t, dir.Write("b.txt", []byte("b")))
	kept, err := store.Keep(t.Context(), copies.Messages{Session: session, Call: call, MaxBytes: 100}, dir, []string{"charts/a.png", "./b.txt", "/workspace/charts/a.png"})
	requireNoError(t, err)
	if len(kept) != 2 || kept[0].Name != "a.png" || kept[0].Path != "charts/a.png" || kept[0].Size != 5 || kept[1].Name != "b.txt" || kept[0].Ref != kept[1].Ref {
		t.Fatalf("kept are %+v", kept)
	}
	requireNoError(t, store.Refer(session, "m", kept))
	requireNoError(t, dir.Write("charts/a.png", []byte("later")))
	requireNoError(t, dir.Remove("b.txt"))
	for i, want := range []string{"first", "b"} {
		if got, err := store.Read(kept[i]); err != nil || string(got) != want {
			t.Errorf("read %q, %v", got, err)
		}
	}
	requireNoError(t, store.Release("m", kept))
	if _, err := store.Read(kept[0]); !errors.Is(err, files.ErrMissing) {
		t.Errorf("after its release a read gives %v", err)
	}
	if err := store.Refer(session, "n", kept); !errors.Is(err, files.ErrMissing) {
		t.Errorf("after its release a reference gives %v", err)
	}
}

func TestInvalidFilesAreRefused(t *testing.T) {
	h, store, dir, session := newSession(t)
	requireNoError(t, dir.Write("large", make([]byte, 11)))
	requireNoError(t, dir.Write("empty", nil))
	requireNoError(t, dir.Write("sub/x", []byte("x")))
	outside := filepath.Join(h.Dir, "sessions.db")
	requireNoError(t, os.Symlink(outside, filepath.Join(dir.Path(), "link")))
	requireNoError(t, os.Link(filepath.Join(dir.Path(), "sub", "x"), filepath.Join(dir.Path(), "linked")))
	many := make([]string, copies.MaxFiles+1)
	for i := range many {
		many[i] = strings.Repeat("n", i+1)
	}
	for _, c := range []struct {
		paths []string
		code  tools.Code
		words string
	}{
		{[]string{"missing"}, tools.FileNotFound, "list_directory"},
		{[]string{"sub"}, tools.InvalidPath, "directory"},
		{[]string{"../x"}, tools.InvalidPath, "leads out"},
		{[]string{outside}, tools.InvalidPath, "outside"},
		{[]string{"link"}, tools.InvalidPath, "leads out"},
		{[]string{"linked"}, tools.InvalidPath, "hard links"},
		{[]string{"large"}, tools.InvalidArgs, "at most 10"},
		{[]string{"empty"}, tools.InvalidArgs, "nothing to send"},
		{[]string{""}, tools.InvalidPath, "empty"},
		{many, tools.InvalidArgs, "at most 10 go"},
	} {
		_, err := store.Keep(t.Context(), copies.Messages{Session: session, Call: call, MaxBytes: 10}, dir, c.paths)
		refused, ok := errors.AsType[*tools.Error](err)
		if !ok || refused.Code != c.code || !strings.Contains(refused.Message, c.words) || strings.Contains(refused.Message, h.Dir) && c.paths[0] != outside {
			t.Errorf("%q: %v, want %s with %q", c.paths, err, c.code, c.words)
		}
	}
	requireNoError(t, dir.Write("much", make([]byte, 1<<20)))
	requireNoError(t, dir.Write("small", []byte("x")))
	_, err := store.Keep(t.Context(), copies.Messages{Session: session, Call: call, MaxBytes: 1 << 20}, dir, []string{"much", "small"})
	if refused, ok := errors.AsType[*tools.Error](err); !ok || !strings.Contains(refused.Message, "sent before have arrived") {
		t.Errorf("more than may wait gives %v", err)
	}
}

func TestForgetsTheFilesOfMessages(t *testing.T) {
	_, store, dir, session := newSession(t)
	requireNoError(t, dir.Write("a", []byte("a")))
	kept := map[string][]bus.FileRef{}
	for _, id := range []string{"one", "two", "three"} {
		refs, err := store.Keep(t.Context(), copies.Messages{Session: session, Call: id, MaxBytes: 10}, dir, []string{"a"})
		requireNoError(t, err)
		kept[id] = refs
		requireNoError(t, store.Refer(session, id, refs))
	}
	requireNoError(t, store.Refer(session, bus.FallbackID("two", 0), kept["two"]))
	requireNoError(t, store.Forget(t.Context(), session, []string{"one", "two"}))
	for id, gone := range map[string]bool{"one": true, "two": true, "three": false} {
		if _, err := store.Read(kept[id][0]); (err != nil) != gone {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// A call that is repeated after an interruption may keep files again for messages that were sent meanwhile.
// Their files are removed, and those of messages that still must be sent stay.
func TestARepeatedCallReleasesFilesOfSentMessages(t *testing.T) {
	h, store, dir, session := newSession(t)
	requireNoError(t, dir.Write("a", []byte("a")))
	to := bus.Address{Channel: hometest.Channel, Chat: "42"}
	letter := copies.Messages{Session: session, Call: call, IDs: []string{"sent", "half", "new"}, MaxBytes: 10}
	kept, err := store.Keep(t.Context(), letter, dir, []string{"a"})
	requireNoError(t, err)
	for id, states := range map[string][]string{"sent": {channels.Sent, channels.Failed}, "half": {channels.Failed, channels.Queued}} {
		_, _, err := h.Book.Begin(t.Context(), channels.Send{ID: id, To: to, Parts: []channels.SentPart{{}, {File: true}}})
		requireNoError(t, err)
		for i, state := range states {
			requireNoError(t, h.Book.Mark(t.Context(), id, i, channels.SentPart{File: i == 1, State: state}))
		}
	}
	requireNoError(t, store.Release("sent", kept)) // by the process that has sent it
	again, err := store.Keep(t.Context(), letter, dir, []string{"a"})
	requireNoError(t, err)
	var outs []bus.Outbound
	for _, id := range letter.IDs {
		outs = append(outs, bus.Outbound{ID: id, To: to, Files: again})
	}
	requireNoError(t, store.ReleaseSent(t.Context(), h.Book, outs))
	var left []string
	all, err := h.Outgoing.References(t.Context(), session)
	requireNoError(t, err)
	for _, r := range all {
		left = append(left, r.Message)
	}
	slices.Sort(left)
	if strings.Join(left, " ") != "half new" {
		t.Errorf("files are kept for %v", left)
	}
	requireNoError(t, store.Release("half", again))
	requireNoError(t, h.Book.Mark(t.Context(), "half", 1, channels.SentPart{File: true, State: channels.Sent}))
	_, _, err = h.Book.Begin(t.Context(), channels.Send{ID: "new", To: to, Parts: []channels.SentPart{{}}})
	requireNoError(t, err)
	requireNoError(t, h.Book.Mark(t.Context(), "new", 0, channels.SentPart{State: channels.Sent}))
	requireNoError(t, store.ReleaseSent(t.Context(), h.Book, outs))
	if _, err := store.Read(again[0]); !errors.Is(err, files.ErrMissing) {
		t.Errorf("after all were sent, a read gives %v", err)
	}
}

// Files that were never published, or whose messages were sent or given up, are removed after a crash. Files of
// messages that still wait are not, no matter how long they wait.
func TestSweep(t *testing.T) {
	h, store, dir, session := newSession(t)
	requireNoError(t, dir.Write("a", []byte("a")))
	keep := func(id string, publish bool) []bus.FileRef {
		refs, err := store.Keep(t.Context(), copies.Messages{Session: session, Call: id, MaxBytes: 10}, dir, []string{"a"})
		requireNoError(t, err)
		requireNoError(t, store.Refer(session, id, refs))
		if publish {
			to := bus.Address{Channel: hometest.Channel, Chat: "42"}
			requireNoError(t, bus.PublishOutbound(t.Context(), h.Bus, bus.Outbound{ID: id, To: to, Text: "x", Session: session, Files: refs, At: time.Now()}))
		}
		return refs
	}
	all := map[string][]bus.FileRef{"waits": keep("waits", true), "never published": keep("never published", false)}
	for id, state := range map[string]string{"sent": channels.Sent, "failed": channels.Failed, "unknown": channels.OutcomeUnknown, "begun": channels.Sending} {
		all[id] = keep(id, false)
		_, _, err := h.Book.Begin(t.Context(), channels.Send{ID: id, To: bus.Address{Channel: hometest.Channel, Chat: "42"}, Parts: []channels.SentPart{{File: true}}})
		requireNoError(t, err)
		requireNoError(t, h.Book.Mark(t.Context(), id, 0, channels.SentPart{File: true, State: state}))
	}
	s := copies.Sweeper{Files: store, Bus: h.Bus, Book: h.Book, Log: slog.New(slog.DiscardHandler)}
	if n, err := s.Sweep(t.Context(), time.Now().Add(-time.Hour)); n != 0 || err != nil {
		t.Errorf("swept of what is new: %d, %v", n, err)
	}
	before := hometest.Rewritings(t, h.Dir)
	if n, err := s.Sweep(t.Context(), time.Now().Add(time.Hour)); n != 4 || err != nil {
		t.Errorf("swept: %d, %v", n, err)
	}
	if n := hometest.Rewritings(t, h.Dir) - before; n != 0 {
		t.Errorf("the database was rewritten %d times, and others waited", n)
	}
	for id, refs := range all {
		_, err := store.Read(refs[0])
		if stays := slices.Contains([]string{"waits", "begun"}, id); (err == nil) != stays {
			t.Errorf("%s: %v", id, err)
		}
	}
	platform := &channelstest.EditingChannel{MemoryChannel: channelstest.NewMemoryChannel()}
	h.RunDispatcher(platform)
	hometest.WaitFor(t, "the message with its file", func() bool { return len(platform.Sent()) == 2 })
	h.WaitIdle()
	if sent := platform.Sent(); sent[1].File == nil || string(sent[1].File.Data) != "a" {
		t.Errorf("sent %+v", sent)
	}
	if _, err := store.Read(all["waits"][0]); !errors.Is(err, files.ErrMissing) {
		t.Errorf("after it was sent: %v", err)
	}
}

// Run sweeps immediately, and works until its context is done.
func TestRunSweepsAtOnce(t *testing.T) {
	h, store, dir, session := newSession(t)
	requireNoError(t, dir.Write("a", []byte("a")))
	refs, err := store.Keep(t.Context(), copies.Messages{Session: session, Call: "x", MaxBytes: 10}, dir, []string{"a"})
	requireNoError(t, err)
	old := time.Now().Add(-48 * time.Hour)
	requireNoError(t, os.Chtimes(filepath.Join(h.Dir, "workspaces", outgoing.Folder, filepath.FromSlash(refs[0].Ref)), old, old))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	s := copies.Sweeper{Files: store, Bus: h.Bus, Book: h.Book, Log: slog.New(slog.DiscardHandler)}
	go func() { ended <- s.Run(ctx, h.Bus) }()
	hometest.WaitFor(t, "the file to go", func() bool {
		_, err := store.Read(refs[0])
		return errors.Is(err, files.ErrMissing)
	})
	cancel()
	requireNoError(t, <-ended)
	if left, err := fs.Glob(os.DirFS(h.Dir), "workspaces/"+outgoing.Folder+"/*"); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
