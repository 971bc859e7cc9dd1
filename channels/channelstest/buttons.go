package channelstest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"

	"parley/bus"
	"parley/channels"
)

// buttoned is a part with buttons, which are all that the channel can show of those that
// it is given.
func (r *channelRun) buttoned(key string) channels.Part {
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
	part := r.buttoned("k")
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
	part := r.buttoned("k")
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
