package channelstest

import (
	"context"
	"fmt"
	"time"

	"parley/bus"
	"parley/channels"
)

// shortTime is the deadline of calls that never end: the adapter should give up when it has passed.
const shortTime = 300 * time.Millisecond

// An expectation says which fault a trouble should cause.
type expectation struct {
	trouble Trouble
	fault   channels.Fault
	shown   int // how many messages the chat shows afterward
}

// sendExpectations returns the expectations for calls that must not be made twice.
func sendExpectations() []expectation {
	return []expectation{
		{RateLimited, channels.Retry, 0},
		{PlaceRefused, channels.Rejected, 0},
		{AccountRefused, channels.Stop, 0},
		{ServerError, channels.Unknown, 0},
		{ProxyPage, channels.Retry, 0},
		{Garbage, channels.Unknown, 0},
		{CutBefore, channels.Unknown, 0},
		{CutAfter, channels.Unknown, 1},
		{HangBefore, channels.Unknown, 0},
		{HangAfter, channels.Unknown, 1},
	}
}

// checkFault makes calls of that kind fail as want says, and checks which error the adapter returns, and that the
// adapter has not repeated the call by itself.
func (r *channelRun) checkFault(kind Call, want expectation, call func(context.Context) error) {
	r.Helper()
	ctx, cancel := r.Context(), func() {}
	if want.trouble == HangBefore || want.trouble == HangAfter {
		ctx, cancel = context.WithTimeout(ctx, shortTime)
	}
	defer cancel()
	before := r.platform.Calls(kind)
	r.platform.Break(kind, want.trouble)
	what := string(kind) + ", " + string(want.trouble)
	err := r.mustEnd(what, func() error { return call(ctx) })
	r.platform.Mend()
	fault := r.faultOf(what, err)
	repeatable := kind != Sending && kind != Uploading && want.fault == channels.Unknown && fault.Fault == channels.Retry
	if fault.Fault != want.fault && !repeatable {
		r.Errorf("%s: got %v, want %s", what, fault, want.fault)
	}
	if n := r.platform.Calls(kind) - before; n != 1 {
		r.Errorf("%s: it was called %d times", what, n)
	}
	if fault.RateLimited != (want.trouble == RateLimited) || fault.RateLimited && fault.RetryAfter != RetryAfter {
		r.Errorf("%s: got %+v, want it to tell of a limit of %v only where there is one", what, fault, RetryAfter)
	}
	_, reads := r.channel.(channels.RefusalReader)
	if reads && want.trouble == PlaceRefused && channels.RefusalOf(r.channel, fault.Code) == "" {
		r.Errorf("%s: Refusal does not know that %q is about the place", what, fault.Code)
	}
}

// mustEnd returns the error of a call, and fails the test if the call does not end.
func (r *channelRun) mustEnd(what string, call func() error) error {
	r.Helper()
	ended := make(chan error, 1)
	go func() { ended <- call() }()
	select {
	case err := <-ended:
		return err
	case <-time.After(waitTimeout):
		r.Fatalf("%s: the call does not end", what)
		return nil
	}
}

func checkSendFaults(r *channelRun) {
	for i, want := range sendExpectations() {
		chat := i + 1
		r.checkFault(Sending, want, func(ctx context.Context) error {
			_, err := r.channel.Send(ctx, r.platform.Address(chat), plainPart(fmt.Sprint("k", i), "hi"))
			return err
		})
		if shown := r.platform.Shown(chat); len(shown) != want.shown {
			r.Errorf("%s: the chat shows %+v, want %d messages", want.trouble, shown, want.shown)
		}
	}
	if after := r.send(len(sendExpectations())+1, plainPart("after", "hi")); after == "" {
		r.Error("nothing can be sent after all that")
	}
}

func checkFileFaults(r *channelRun) {
	files, can := channels.AsFileSender(r.channel)
	if !can {
		r.Skip("the channel is no FileSender")
	}
	for i, want := range sendExpectations() {
		chat := i + 1
		r.checkFault(Uploading, want, func(ctx context.Context) error {
			_, err := files.SendFile(ctx, r.platform.Address(chat), someFile(), plainPart(fmt.Sprint("k", i), "look"))
			return err
		})
		if shown := r.platform.Shown(chat); len(shown) != want.shown {
			r.Errorf("%s: the chat shows %+v, want %d files", want.trouble, shown, want.shown)
		}
	}
	id, err := files.SendFile(r.Context(), r.platform.Address(20), someFile(), plainPart("k", "look"))
	shown := r.platform.Shown(20)
	if err != nil || id == "" || len(shown) != 1 || shown[0].File != someFile().Name || shown[0].Text != "look "+PersonWords {
		r.Errorf("SendFile = %q, %v, and the chat shows %+v", id, err, shown)
	}
}

func someFile() bus.File { return bus.File{Name: "log.txt", Data: []byte("lines")} }

// checkEditFaults also checks that an edit replaces the text. An edit may be repeated, so an adapter may report an
// unknown outcome as a failure.
func checkEditFaults(r *channelRun) {
	editor, can := channels.AsEditor(r.channel)
	if !can {
		r.Skip("the channel is no Editor")
	}
	for i, want := range sendExpectations() {
		chat := i + 1
		id := r.send(chat, plainPart(fmt.Sprint("k", i), "first"))
		r.checkFault(Editing, want, func(ctx context.Context) error {
			return editor.Edit(ctx, r.platform.Address(chat), id, plainPart(fmt.Sprint("k", i), "second"))
		})
		if shown := r.platform.Shown(chat); len(shown) != 1 || shown[0].ID != id {
			r.Errorf("%s: the chat shows %+v, want one message", want.trouble, shown)
		}
		if err := editor.Edit(r.Context(), r.platform.Address(chat), id, plainPart(fmt.Sprint("k", i), "third")); err != nil {
			r.Errorf("after %s: Edit = %v", want.trouble, err)
		}
		if shown := r.platform.Shown(chat); len(shown) != 1 || shown[0].Text != "third "+PersonWords {
			r.Errorf("the chat shows %+v, want the newest text", shown)
		}
	}
	nowhere := r.platform.Address(len(sendExpectations()) + 1)
	id := r.platform.Shown(1)[0].ID
	if fault := r.faultOf("edited where it is not", editor.Edit(r.Context(), nowhere, id, plainPart("k", "x"))); fault.Fault != channels.Rejected {
		r.Errorf("an edit of what is not there gives %v, want %s", fault, channels.Rejected)
	}
}

func checkTypingLimited(r *channelRun) {
	typer, can := channels.AsTyper(r.channel)
	if !can {
		r.Skip("the channel is no Typer")
	}
	at := r.platform.Address(1)
	if p, ok := r.platform.(TypingPlatform); ok {
		at = p.TypingAddress(1)
	}
	r.checkFault(Showing, expectation{trouble: RateLimited, fault: channels.Retry}, func(ctx context.Context) error {
		_, err := typer.Typing(ctx, at)
		return err
	})
	if fades, err := typer.Typing(r.Context(), at); err != nil || fades <= 0 {
		r.Errorf("then Typing = %v, %v", fades, err)
	}
}
