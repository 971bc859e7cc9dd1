package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/agent"
	"parley/bus"
	"parley/sessions"
	"parley/sessions/bill"
	"parley/sessions/outgoing"
)

// readingPrice is what a reading costs, in micro-dollars.
const readingPrice = 60_000

// A diskVoice keeps its recordings in a directory, and counts there how often its model was asked. It passes the point
// "asked" while the model works.
type diskVoice struct {
	dir   string
	store *outgoing.Store
	point func(string)
}

func newDiskVoice(dir string, point func(string)) (*diskVoice, error) {
	root := filepath.Join(dir, "workspaces")
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, err
	}
	store, err := outgoing.Open(root, 1<<20)
	if point == nil {
		point = func(string) {}
	}
	return &diskVoice{dir, store, point}, err
}

func (*diskVoice) Reaches(at bus.Address) bool       { return at.Channel == "test" }
func (*diskVoice) AnswersSpeech(at bus.Address) bool { return true }
func (*diskVoice) Mark(tool string, args json.RawMessage) (string, bool) {
	_, text, _ := strings.Cut(strings.TrimSuffix(string(args), `"}`), "aloud: ")
	return text, tool == "say" && strings.Contains(string(args), "aloud")
}

func (*diskVoice) Words(text string) (string, bool) {
	words, _, cut := strings.Cut(text, "{")
	return words, !cut
}

func (*diskVoice) Price(string) (string, int64, bool) { return "tts", readingPrice, true }

func (v *diskVoice) Find(_ context.Context, r agent.Reading) (*bus.FileRef, bool, error) {
	if _, err := os.Stat(filepath.Join(v.dir, "sent")); err == nil {
		return nil, true, nil
	}
	kept, err := v.store.Kept(r.Session, r.Message)
	if err != nil || len(kept) == 0 {
		return nil, false, err
	}
	found, err := v.refer(r, kept[0])
	return found, false, err
}

func (v *diskVoice) refer(r agent.Reading, f outgoing.File) (*bus.FileRef, error) {
	err := v.store.Refer(outgoing.Reference{Ref: f.Ref, Session: r.Session, Message: r.Message})
	return &bus.FileRef{Name: "voice.ogg", Size: f.Size, SHA256: f.SHA256, Ref: f.Ref, Voice: true}, err
}

func (v *diskVoice) Record(ctx context.Context, r agent.Reading) (bus.FileRef, error) {
	n := v.timesAsked() + 1
	if err := os.WriteFile(filepath.Join(v.dir, "asked"), []byte(strings.Repeat("x", n)), 0o600); err != nil {
		return bus.FileRef{}, err
	}
	v.point("asked")
	kept, err := v.store.Keep(ctx, r.Session, r.Message, strings.NewReader(fmt.Sprintf("%s, take %d", r.Words, n)), 1<<20)
	if err != nil {
		return bus.FileRef{}, err
	}
	ref, err := v.refer(r, kept)
	return *ref, err
}

// timesAsked returns how often the model was asked.
func (v *diskVoice) timesAsked() int {
	all, err := os.ReadFile(filepath.Join(v.dir, "asked"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		panic(err)
	}
	return len(all)
}

// A refusingVoice refuses what it is to read, which the agent has marked.
type refusingVoice struct{ *diskVoice }

func (refusingVoice) Mark(string, json.RawMessage) (string, bool) { return "", true }

func (v refusingVoice) Record(context.Context, agent.Reading) (bus.FileRef, error) {
	asked := []byte(strings.Repeat("x", v.timesAsked()+1))
	if err := os.WriteFile(filepath.Join(v.dir, "asked"), asked, 0o600); err != nil {
		return bus.FileRef{}, err
	}
	return bus.FileRef{}, &agent.UnreadError{Code: "refused", Why: "the server refused it"}
}

// publishVoiceMessage publishes a message by Ann that consists of a voice recording.
func publishVoiceMessage(t *testing.T, dir string) {
	t.Helper()
	publishInbound(t, dir, bus.Inbound{
		ID: "m1", Kind: bus.Said, From: bus.Person{ID: "test:ann1"}, At: bus.Address{Channel: "test", Chat: "1"},
		Attachments: []bus.Attachment{{Kind: bus.Voice, Ref: "1"}},
	})
}

// Wherever a process dies while it reads an answer aloud, the chat gets the text and then one recording, and the speech
// model is asked at most one extra time.
func TestKilledWhileReadingAloud(t *testing.T) {
	t.Parallel()
	for at, asked := range map[string]int{
		"c6:before": 1, "c6": 1, "c7:published": 1, "aloud:ask": 1, "asked": 2, "aloud:made": 1, "aloud:published": 1, "c7": 1, "settled": 1,
	} {
		runSharedAndSeparate(t, at, func(t *testing.T, dir string) {
			publishVoiceMessage(t, dir)
			runKilled(t, dir, at, readingAloud)
			runToEnd(t, dir, readingAloud)
			checkAloud(t, dir, asked)
		})
	}
}

// checkAloud checks the messages and costs of a log, given how often the speech model was asked.
func checkAloud(t *testing.T, dir string, asked int) {
	t.Helper()
	voice, err := newDiskVoice(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := voice.timesAsked(); n != asked {
		t.Errorf("the model was asked %d times, want %d", n, asked)
	}
	h := openHome(t, dir)
	out := outboundMail(t, h.bus)
	if len(out) != 2 || out[0].ID != "m1#reply" || len(out[0].Files) > 0 || out[1].ID != "m1#voice" || len(out[1].Files) != 1 || !out[1].Files[0].Voice {
		t.Fatalf("said %+v, want an answer and a recording of it", out)
	}
	f := out[1].Files[0]
	content, err := voice.store.Read(outgoing.File{Ref: f.Ref, SHA256: f.SHA256, Size: f.Size})
	if want := fmt.Sprintf("done: , take %d", asked); err != nil || string(content) != want {
		t.Errorf("the recording is %q, %v, want %q", content, err, want)
	}
	if !strings.Contains(out[1].Text, "only in the text above") {
		t.Errorf("the recording came with %q", out[1].Text)
	}
	ends, published := 0, 0
	for e, err := range h.store.Read(t.Context(), "main:test:1", 1) {
		if err != nil {
			t.Fatal(err)
		}
		switch e.Kind {
		case sessions.KindTurnDone:
			ends++
		case sessions.KindPublished:
			published++
		}
	}
	if ends != 1 || published != 1 {
		t.Errorf("the log has %d ends and %d publications", ends, published)
	}
	used, err := h.store.Bill().Usage(t.Context(), bill.ByModel, time.Now().AddDate(0, 0, -1), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	read := int64(0)
	for _, u := range used {
		if u.Key == "tts" {
			read = u.Microdollars
		}
	}
	// The store settles what a process had set aside that died while the model worked, as spent.
	if read != readingPrice {
		t.Errorf("the log has %d for readings, want %d, of %+v", read, readingPrice, used)
	}
}

// Wherever a process dies after the speech model has refused, the person and the agent are told once. The model is not
// asked again, and nobody pays for a recording that was never made.
func TestKilledAfterAReadingWasRefused(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"aloud:unread", "aloud:published", "c7"} {
		runSharedAndSeparate(t, at, func(t *testing.T, dir string) {
			publishVoiceMessage(t, dir)
			runKilled(t, dir, at, refusedAloud)
			if at == "aloud:published" {
				if err := os.WriteFile(filepath.Join(dir, "sent"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			runToEnd(t, dir, refusedAloud)
			voice, err := newDiskVoice(dir, nil)
			if err != nil || voice.timesAsked() != 1 {
				t.Errorf("the model was asked %d times, %v", voice.timesAsked(), err)
			}
			h := openHome(t, dir)
			if out := outboundMail(t, h.bus); len(out) != 2 || out[1].ID != "m1#voice" || !strings.Contains(out[1].Text, "I couldn't read that aloud: the server refused it.") {
				t.Errorf("said %+v", out)
			}
			told := 0
			for e, err := range h.store.Read(t.Context(), "main:test:1", 1) {
				if err != nil {
					t.Fatal(err)
				}
				if n, err := sessions.Decode[sessions.Notice](e); e.Kind == sessions.KindNotice && err == nil && n.Code == sessions.NoticeUnread {
					told++
				}
			}
			used, err := h.store.Bill().Usage(t.Context(), bill.ByModel, time.Now().AddDate(0, 0, -1), time.Now())
			paid := slices.ContainsFunc(used, func(u bill.Sum) bool { return u.Key == "tts" && u.Microdollars > 0 })
			if told != 1 || paid || err != nil {
				t.Errorf("the agent was told %d times, and the bill is %+v, %v", told, used, err)
			}
		})
	}
}

// An answer that is cut off again and again while it is read aloud is no longer read.
func TestAReadingThatKillsIsGivenUp(t *testing.T) {
	t.Parallel()
	runSharedAndSeparate(t, "", func(t *testing.T, dir string) {
		publishVoiceMessage(t, dir)
		runKilled(t, dir, "asked", readingAloud)
		runKilled(t, dir, "asked", readingAloud)
		runToEnd(t, dir, readingAloud)
		out := outboundMail(t, openHome(t, dir).bus)
		if voice, err := newDiskVoice(dir, nil); err != nil || voice.timesAsked() != 2 || len(out) != 1 || out[0].ID != "m1#reply" {
			t.Errorf("said %+v, %v", out, err)
		}
	})
}

// Once a recording is with whoever sends it, nobody makes it again, even if its file is gone.
func TestAReadingThatWasSentIsNotMadeAgain(t *testing.T) {
	t.Parallel()
	runSharedAndSeparate(t, "", func(t *testing.T, dir string) {
		publishVoiceMessage(t, dir)
		runKilled(t, dir, "aloud:published", readingAloud)
		voice, err := newDiskVoice(dir, nil)
		if err == nil {
			_, err = voice.store.Remove(t.Context(), "main:test:1")
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "sent"), nil, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		runToEnd(t, dir, readingAloud)
		if out := outboundMail(t, openHome(t, dir).bus); voice.timesAsked() != 1 || len(out) != 2 {
			t.Errorf("asked %d times, and said %+v", voice.timesAsked(), out)
		}
	})
}
