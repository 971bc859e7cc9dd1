package channelstest

import (
	"fmt"
	"sync"
	"testing"

	"parley/channels"
)

func testNotes(t *testing.T, s suite) {
	b := s.open(t)
	ctx := t.Context()
	must(t, b.Note(ctx, "met", "c:1", "a"))
	must(t, b.Note(ctx, "met", "c:1", "a"))
	must(t, b.Note(ctx, "met", "c:\x00 2", "odd\x00\xff"))
	must(t, b.Note(ctx, "other", "c:1", "x"))
	must(t, b.Note(ctx, "met", "c:1", "b"))
	found, err := b.Noted(ctx, "met", "c:1")
	must(t, err)
	if found.About != "c:1" || found.Value != "b" || found.At.IsZero() {
		t.Errorf("noted is %+v", found)
	}
	all, err := s.open(t).AllNoted(ctx, "met")
	must(t, err)
	if len(all) != 2 || all[0].About != "c:\x00 2" || all[0].Value != "odd\x00\xff" || all[1].Value != "b" {
		t.Errorf("another process reads %+v", all)
	}
	must(t, b.Note(ctx, "met", "c:1", ""))
	must(t, b.Note(ctx, "met", "c:nobody", ""))
	if found, err := b.Noted(ctx, "met", "c:1"); err != nil || found != (channels.Remark{}) {
		t.Errorf("after it was removed there is %+v, %v", found, err)
	}
	if found, err := b.Noted(ctx, "other", "c:1"); err != nil || found.Value != "x" {
		t.Errorf("of another subject there is %+v, %v", found, err)
	}
}

// testNoteRace has several processes note the same first.
func testNoteRace(t *testing.T, s suite) {
	books := []Book{s.open(t), s.open(t)}
	for round := range 10 {
		about := fmt.Sprint("c", round)
		kept := make([]string, 6)
		var racing sync.WaitGroup
		for i := range kept {
			racing.Go(func() {
				var err error
				if kept[i], err = books[i%2].NoteFirst(t.Context(), "first", about, fmt.Sprint("v", i)); err != nil {
					t.Error(err)
				}
			})
		}
		racing.Wait()
		noted, err := books[0].Noted(t.Context(), "first", about)
		must(t, err)
		for _, one := range kept {
			if one != noted.Value || one == "" {
				t.Errorf("the book has %q, and somebody was told %q", noted.Value, one)
			}
		}
	}
}
