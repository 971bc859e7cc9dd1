package channelstest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync/atomic"

	"parley/bus"
	"parley/channels"
)

// partWithButtons returns a part with those of four buttons that the channel can show. One of them has a blank
// label, one a long label, and one a command that is too long. If the channel shows no buttons, the check is
// skipped.
func (r *channelRun) partWithButtons(key string) channels.Part {
	r.Helper()
	part := plainPart(key, "may I?")
	part.Buttons = channels.ShownButtons(r.channel, []bus.Button{
		{Label: "Yes", Says: "/approve abc"}, {Label: " ", Says: "/nothing"}, {Label: strings.Repeat("no 😀", 50), Says: "/deny abc"},
		{Label: "too long", Says: strings.Repeat("x", 10_000)},
	})
	if len(part.Buttons) == 0 {
		r.Skip("the channel shows no buttons: the text says what to do")
	}
	if len(part.Buttons) != 2 || part.Buttons[1].Says != "/deny abc" {
		r.Fatalf("shown are %+v", part.Buttons)
	}
	return part
}

func checkButtons(r *channelRun) {
	part := r.partWithButtons("k")
	labels := []string{part.Buttons[0].Label, part.Buttons[1].Label}
	plain := plainPart("k", "may I?")
	id := r.send(1, part)
	want := func(what, text string, labels []string) {
		r.Helper()
		shown := r.platform.Shown(1)
		if len(shown) != 1 || shown[0].Text != text || !slices.Equal(shown[0].Buttons, labels) {
			r.Fatalf("%s, the chat shows %+v, want %q with %q", what, shown, text, labels)
		}
	}
	want("sent", plain.Text, labels)
	e, can := channels.AsEditor(r.channel)
	if !can {
		return
	}
	edit := func(part channels.Part) {
		r.Helper()
		if err := e.Edit(r.Context(), r.platform.Address(1), id, part); err != nil {
			r.Fatal(err)
		}
	}
	edit(plain) // the same text
	want("edited", plain.Text, nil)
	edit(part)
	want("edited again", plain.Text, labels)
	done := plainPart("k", "approved")
	edit(done)
	want("decided", done.Text, nil)
}

func checkPress(r *channelRun) {
	part := r.partWithButtons("k")
	platform, can := r.platform.(PressingPlatform)
	if !can {
		r.Fatal("the channel shows buttons, and the fake has no Press")
	}
	id := r.send(1, part)
	var asked, taken, refused atomic.Int32
	var told func() bool
	pressed := make(chan struct{})
	heard := make(chan bus.Inbound, 10)
	stop := r.receive(r.channel, func(_ context.Context, in bus.Inbound) error {
		if in.Text == part.Buttons[1].Says {
			refused.Add(1)
			return channels.ErrNotAdmitted
		}
		<-pressed
		switch {
		case told():
			r.Error("the platform was told before the press was published")
		case asked.Add(1) == 1:
			return errors.New("the store is away")
		}
		taken.Add(1)
		heard <- in
		return nil
	})
	told = platform.Press(1, id, part.Buttons[0].Label)
	close(pressed)
	r.until("the press is told to have arrived", told)
	if taken.Load() != 1 {
		r.Fatalf("it was published %d times", taken.Load())
	}
	in := <-heard
	if !in.Pressed || !in.Mentioned || in.Kind != bus.Said || in.Text != "/approve abc" || in.ReplyTo != id || in.At != r.platform.Address(1) ||
		in.ID == "" || !strings.HasPrefix(in.From.ID, in.At.Channel+":") {
		r.Errorf("published %+v", in)
	}
	r.until("a press of one who is not admitted is told, too", platform.Press(1, id, part.Buttons[1].Label))
	if err := stop(); err != nil {
		r.Error(err)
	}
	if refused.Load() != 1 || taken.Load() != 1 {
		r.Errorf("refused %d times, taken %d times", refused.Load(), taken.Load())
	}
}

// An AttachingPlatform is a FakePlatform on which people send files.
type AttachingPlatform interface {
	// Attach makes the person in a chat say something and send a file with it.
	Attach(chat int, text, name string, content []byte)
	// Detach removes all files from the platform.
	Detach()
}

// checkAttachments lets a file arrive and fetches it, also through a second channel that has not received the
// message, like a worker's.
func checkAttachments(r *channelRun) {
	if _, can := channels.AsFetcher(r.channel); !can {
		r.Skip("the channel fetches no files")
	}
	platform, can := r.platform.(AttachingPlatform)
	if !can {
		r.Fatal("the channel fetches files, and the fake has no Attach")
	}
	content := bytes.Repeat([]byte(PersonWords+" 0123456789\n"), 300)
	s := newRecordingStore(r)
	stop := r.receive(r.channel, s.publish)
	platform.Attach(1, "look at this", "notes.txt", content)
	in := s.waitFor(1)[0]
	if err := stop(); err != nil {
		r.Error(err)
	}
	fetcher, _ := channels.AsFetcher(r.newChannel())
	if in.Kind != bus.Said || len(in.Attachments) != 1 {
		r.Fatalf("published %+v", in)
	}
	a := in.Attachments[0]
	if a.Kind != bus.Document || a.Name != "notes.txt" || a.Size != int64(len(content)) || a.Ref == "" {
		r.Errorf("attached is %+v", a)
	}
	r.checkSecrecy("the reference of a file", a.Ref)
	got, err := r.fetch(fetcher, in.At, a, int64(len(content)))
	if err != nil || !bytes.Equal(got, content) {
		r.Errorf("fetched %d bytes, %v, want %d", len(got), err, len(content))
	}
	a.Size = 0 // as if the platform had not said how large it is
	if _, err := r.fetch(fetcher, in.At, a, int64(len(content))-1); !errors.Is(err, channels.ErrTooLarge) {
		r.Errorf("of a file that is too large: %v", err)
	}
	platform.Detach()
	_, err = r.fetch(fetcher, in.At, a, 1<<20)
	if refusal, ok := errors.AsType[*channels.SendError](err); !ok || refusal.Fault != channels.Rejected {
		r.Errorf("of a file that is gone: %v", err)
	}
	r.platform.Down()
	_, err = r.fetch(fetcher, in.At, a, 1<<20)
	if refusal, ok := errors.AsType[*channels.SendError](err); !ok || refusal.Fault != channels.Retry {
		r.Errorf("while the platform is away: %v", err)
	}
	r.platform.Up()
}

// fetch downloads a whole attachment.
func (r *channelRun) fetch(from channels.Fetcher, at bus.Address, a bus.Attachment, most int64) ([]byte, error) {
	r.Helper()
	file, err := from.Fetch(r.Context(), at, a, most)
	if err != nil {
		r.checkSecrecy("an error", err.Error())
		return nil, err
	}
	got, err := io.ReadAll(file)
	return got, errors.Join(err, file.Close())
}
