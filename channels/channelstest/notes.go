package channelstest

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"parley/bus"
	"parley/channels"
)

func testNotes(t *testing.T, s suite) {
	b := s.open(t)
	ctx := t.Context()
	requireNoError(t, b.SetNote(ctx, "met", "c:1", "a"))
	requireNoError(t, b.SetNote(ctx, "met", "c:1", "a"))
	requireNoError(t, b.SetNote(ctx, "met", "c:\x00 2", "odd\x00\xff"))
	requireNoError(t, b.SetNote(ctx, "other", "c:1", "x"))
	requireNoError(t, b.SetNote(ctx, "met", "c:1", "b"))
	found, err := b.Noted(ctx, "met", "c:1")
	requireNoError(t, err)
	if found.About != "c:1" || found.Value != "b" || found.At.IsZero() {
		t.Errorf("noted is %+v", found)
	}
	all, err := s.open(t).AllNoted(ctx, "met")
	requireNoError(t, err)
	if len(all) != 2 || all[0].About != "c:\x00 2" || all[0].Value != "odd\x00\xff" || all[1].Value != "b" {
		t.Errorf("another process reads %+v", all)
	}
	requireNoError(t, b.SetNote(ctx, "met", "c:1", ""))
	requireNoError(t, b.SetNote(ctx, "met", "c:nobody", ""))
	if found, err := b.Noted(ctx, "met", "c:1"); err != nil || found != (channels.Note{}) {
		t.Errorf("after it was removed there is %+v, %v", found, err)
	}
	if found, err := b.Noted(ctx, "other", "c:1"); err != nil || found.Value != "x" {
		t.Errorf("of another subject there is %+v, %v", found, err)
	}
}

// testNoteRace makes several processes call SetNoteOnce for the same thing at the same time.
func testNoteRace(t *testing.T, s suite) {
	books := []Book{s.open(t), s.open(t)}
	for round := range 10 {
		about := fmt.Sprint("c", round)
		kept := make([]string, 6)
		var racing sync.WaitGroup
		for i := range kept {
			racing.Go(func() {
				var err error
				if kept[i], err = books[i%2].SetNoteOnce(t.Context(), "first", about, fmt.Sprint("v", i)); err != nil {
					t.Error(err)
				}
			})
		}
		racing.Wait()
		noted, err := books[0].Noted(t.Context(), "first", about)
		requireNoError(t, err)
		for _, one := range kept {
			if one != noted.Value || one == "" {
				t.Errorf("the book has %q, and somebody was told %q", noted.Value, one)
			}
		}
	}
}

func testDrafts(t *testing.T, s suite) {
	b := s.open(t)
	draft := func(id, channel string) channels.Send {
		return channels.Send{ID: id, To: bus.Address{Channel: channel, Chat: "1", Thread: "2"}, Parts: []channels.SentPart{{State: channels.Drafted}}}
	}
	mustBegin(t, b, newSend("m", "no draft"))
	for _, d := range []channels.Send{draft("first", "c"), draft("second\x00", "c"), draft("replaced", "c"), draft("elsewhere", "d")} {
		if known, fresh := mustBegin(t, b, d); !fresh || known.Parts[0].State != channels.Drafted {
			t.Errorf("begun: %+v, fresh %v", known, fresh)
		}
	}
	requireNoError(t, b.Mark(t.Context(), "second\x00", 0, channels.SentPart{State: channels.Drafted, PlatformID: "p2"}))
	requireNoError(t, b.Mark(t.Context(), "replaced", 0, channels.SentPart{State: channels.Sent, PlatformID: "p3"}))
	b = s.reopen(t, b)
	if _, fresh := mustBegin(t, b, draft("first", "c")); fresh {
		t.Error("a draft is begun twice")
	}
	drafts, err := b.Drafts(t.Context(), "c")
	requireNoError(t, err)
	var got []string
	for _, d := range drafts {
		if d.To != (bus.Address{Channel: "c", Chat: "1", Thread: "2"}) || len(d.Parts) != 1 || d.State() != channels.Sent {
			t.Errorf("listed %+v", d)
			continue
		}
		got = append(got, d.ID+" "+d.Parts[0].State+" "+d.Parts[0].PlatformID)
	}
	if want := "first draft |second\x00 draft p2"; strings.Join(got, "|") != want {
		t.Errorf("drafts %q, want %q", got, want)
	}
	if drafts, err := b.Drafts(t.Context(), "none"); err != nil || len(drafts) != 0 {
		t.Errorf("of a channel without any: %+v, %v", drafts, err)
	}
}
