package attachments_test

import (
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/files/copies"
	"parley/cmd/parley/data/attachments"
	"parley/cmd/parley/hometest"
)

// An upload is kept as long as its message waits, however often the message is sent, and no longer.
func TestUploadsStayWhileTheirMessageWaits(t *testing.T) {
	h := hometest.Open(t, t.TempDir())
	session := hometest.Key(t, "42")
	up := attachments.Uploads{Store: h.Outgoing, Log: h.Store}
	keep := func(message string) []bus.Attachment {
		kept, err := up.Keep(t.Context(), session, message, []bus.File{{Name: "a.txt", Data: []byte("words")}, {Name: "b.png", Data: []byte("\x89PNG\r\n\x1a\n")}})
		if err != nil || len(kept) != 2 || kept[0].Kind != bus.Document || kept[1].Kind != bus.Picture || kept[1].Type != "image/png" || kept[0].Name != "a.txt" || kept[0].Size != 5 {
			t.Fatalf("kept %+v, %v", kept, err)
		}
		return kept
	}
	waits, again, lost := keep("waits"), keep("waits"), keep("never published")
	if waits[0] != again[0] {
		t.Errorf("the second time it is %+v, not %+v", again[0], waits[0])
	}
	at := bus.Address{Channel: "console", Chat: "default"}
	in := bus.Inbound{ID: "waits", Kind: bus.Said, From: bus.Person{ID: "console:owner"}, At: at, Attachments: waits}
	if err := bus.PublishInbound(t.Context(), h.Bus, session, in, false); err != nil {
		t.Fatal(err)
	}
	sweeper := copies.Sweeper{Files: copies.Files{Store: h.Outgoing}, Bus: h.Bus, Book: h.Book, Log: slog.New(slog.DiscardHandler)}
	if n, err := sweeper.Sweep(t.Context(), time.Now().Add(time.Hour)); n != 1 || err != nil {
		t.Errorf("swept: %d, %v", n, err)
	}
	r, err := up.Fetch(t.Context(), at, waits[0], 5)
	if err != nil {
		t.Fatal(err)
	}
	if raw, err := io.ReadAll(r); string(raw) != "words" || err != nil {
		t.Errorf("fetched %q, %v", raw, err)
	}
	if _, err := up.Fetch(t.Context(), at, waits[0], 4); !errors.Is(err, channels.ErrTooLarge) {
		t.Errorf("more than may be fetched: %v", err)
	}
	for _, ref := range []string{lost[0].Ref, "", "/etc/passwd", "../../../etc/passwd/9", waits[0].Ref + "0"} {
		refused, ok := errors.AsType[*channels.SendError](func() error {
			_, err := up.Fetch(t.Context(), at, bus.Attachment{Ref: ref}, 1<<20)
			return err
		}())
		if !ok || refused.Fault != channels.Rejected {
			t.Errorf("%q: %v", ref, refused)
		}
	}
	if _, err := up.Keep(t.Context(), session, "much", []bus.File{{Name: "large", Data: make([]byte, 1<<20)}}); !errors.Is(err, attachments.ErrFull) {
		t.Errorf("more than may wait: %v", err)
	}
}
