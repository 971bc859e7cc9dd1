package channelstest

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/markup"
)

// shortTime is for calls that never end: the adapter is to give up when it is over.
const shortTime = 300 * time.Millisecond

// plainPart is a part without markup. It holds Words, so that the errors and the log
// of a check in which it is sent can be searched for them.
func plainPart(key, text string) channels.Part {
	text += " " + Words
	return channels.Part{Key: key, Text: text, Plain: text}
}

func (r *channelRun) send(chat int, part channels.Part) string {
	r.Helper()
	id, err := r.channel.Send(r.Context(), r.platform.Address(chat), part)
	if err != nil || id == "" {
		r.Fatalf("Send = %q, %v", id, err)
	}
	return id
}

func checkSent(r *channelRun) {
	for i := range 3 {
		id := r.send(1, plainPart(fmt.Sprint("k", i), fmt.Sprint("m", i)))
		shown := r.platform.Shown(1)
		if len(shown) != i+1 || shown[i].Text != fmt.Sprint("m", i, " ", Words) || shown[i].ID != id && shown[i].ID != "" {
			r.Fatalf("message %d was sent as %s, and the chat shows %+v", i, id, shown)
		}
	}
}

// An expectation is what a trouble is to mean.
type expectation struct {
	trouble Trouble
	fault   channels.Fault
	shown   int // messages in the chat afterwards
}

// sendExpectations are those of calls that must not be made twice.
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
	if err != nil || id == "" || len(shown) != 1 || shown[0].File != someFile().Name || shown[0].Text != "look "+Words {
		r.Errorf("SendFile = %q, %v, and the chat shows %+v", id, err, shown)
	}
}

func someFile() bus.File { return bus.File{Name: "log.txt", Data: []byte("lines")} }

// checkEditFaults also checks that an edit takes the place of the text. An edit may
// be repeated, so an adapter may give its unknown outcome as a failure.
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
		if shown := r.platform.Shown(chat); len(shown) != 1 || shown[0].Text != "third "+Words {
			r.Errorf("the chat shows %+v, want the newest text", shown)
		}
	}
	nowhere := r.platform.Address(len(sendExpectations()) + 1)
	id := r.platform.Shown(1)[0].ID
	if fault := r.faultOf("edited where it is not", editor.Edit(r.Context(), nowhere, id, plainPart("k", "x"))); fault.Fault != channels.Rejected {
		r.Errorf("an edit of what is not there gives %v, want %s", fault, channels.Rejected)
	}
}

// bounded is the error of a call that has to end.
func (r *channelRun) bounded(what string, call func() error) error {
	r.Helper()
	ended := make(chan error, 1)
	go func() { ended <- call() }()
	select {
	case err := <-ended:
		return err
	case <-time.After(patience):
		r.Fatalf("%s: the call does not end", what)
		return nil
	}
}

// checkFault makes a call in trouble, and checks what the adapter says of it and
// that it has not called again by itself.
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
	err := r.bounded(what, func() error { return call(ctx) })
	r.platform.Mend()
	fault := r.faultOf(what, err)
	repeatable := kind != Sending && kind != Uploading && want.fault == channels.Unknown && fault.Fault == channels.Retry
	if fault.Fault != want.fault && !repeatable {
		r.Errorf("%s: got %v, want %s", what, fault, want.fault)
	}
	if n := r.platform.Calls(kind) - before; n != 1 {
		r.Errorf("%s: it was called %d times", what, n)
	}
	if fault.Limited != (want.trouble == RateLimited) || fault.Limited && fault.RetryAfter != RetryAfter {
		r.Errorf("%s: got %+v, want it to tell of a limit of %v only where there is one", what, fault, RetryAfter)
	}
	_, reads := r.channel.(channels.RefusalReader)
	if reads && want.trouble == PlaceRefused && channels.RefusalOf(r.channel, fault.Code) == "" {
		r.Errorf("%s: Refusal does not know that %q is about the place", what, fault.Code)
	}
}

func checkTypingLimited(r *channelRun) {
	typer, can := channels.AsTyper(r.channel)
	if !can {
		r.Skip("the channel is no Typer")
	}
	r.checkFault(Showing, expectation{trouble: RateLimited, fault: channels.Retry}, func(ctx context.Context) error {
		_, err := typer.Typing(ctx, r.platform.Address(1))
		return err
	})
	if fades, err := typer.Typing(r.Context(), r.platform.Address(1)); err != nil || fades <= 0 {
		r.Errorf("then Typing = %v, %v", fades, err)
	}
}

// checkUnreachable calls through a channel without open connections: of what goes
// into one that is just being closed nobody can tell whether it arrived.
func checkUnreachable(r *channelRun) {
	r.platform.Down()
	connector, tells := r.channel.(channels.Connector)
	_, err := r.channel.Send(r.Context(), r.platform.Address(1), plainPart("k", "hi"))
	if fault := r.faultOf("sent to a platform that is away", err); fault.Fault != channels.Retry {
		r.Errorf("got %v, want %s", fault, channels.Retry)
	}
	if tells && connector.Connected() {
		r.Error("the channel counts as connected to a platform that is away")
	}
	r.platform.Up()
	r.send(1, plainPart("k", "hi"))
	if tells && !connector.Connected() {
		r.Error("the channel does not count as connected again")
	}
}

func checkFindSent(r *channelRun) {
	finder, can := channels.AsReconciler(r.channel)
	if !can {
		r.Skip("the channel is no Reconciler: the outcome stays unknown, which the troubles of Send check")
	}
	for chat, trouble := range map[int]Trouble{1: CutAfter, 2: HangAfter, 3: CutBefore, 4: HangBefore} {
		at, part := r.platform.Address(chat), plainPart(fmt.Sprint("k", chat), "hi")
		r.checkFault(Sending, expectation{trouble: trouble, fault: channels.Unknown}, func(ctx context.Context) error {
			if trouble == HangAfter || trouble == HangBefore {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, shortTime)
				defer cancel()
			}
			_, err := r.channel.Send(ctx, at, part)
			return err
		})
		for _, broken := range []Trouble{ServerError, CutBefore} {
			r.platform.Break(Finding, broken)
			_, sent, err := finder.FindSent(r.Context(), at, part)
			r.platform.Mend()
			if fault := r.faultOf("looked for in vain", err); sent || fault.Fault == channels.Rejected {
				r.Errorf("%s: FindSent = %v, %v where nobody can tell", trouble, sent, err)
			}
		}
		r.checkFound(finder, chat, part)
	}
}

// checkFound checks what FindSent says of a part against what the chat shows. One that
// is not there it may not be able to exclude.
func (r *channelRun) checkFound(finder channels.Reconciler, chat int, part channels.Part) {
	r.Helper()
	id, sent, err := finder.FindSent(r.Context(), r.platform.Address(chat), part)
	shown := r.platform.Shown(chat)
	switch {
	case len(shown) == 1:
		if err != nil || !sent || id != shown[0].ID {
			r.Errorf("FindSent = %q, %v, %v of what the chat shows: %+v", id, sent, err, shown)
		}
	case err != nil:
		if fault := r.faultOf("looked for where it is not", err); sent || fault.Fault != channels.Unknown {
			r.Errorf("FindSent = %v, %v of what was not sent", sent, err)
		}
	case sent || id != "":
		r.Errorf("FindSent = %q, %v of what was not sent", id, sent)
	}
}

func checkLeaseChecked(r *channelRun) {
	at, part := r.platform.Address(1), plainPart("k", "hi")
	id := r.send(1, part)
	calls := map[string]func(context.Context) error{
		"Send": func(ctx context.Context) error {
			_, err := r.channel.Send(ctx, at, plainPart("k2", "late"))
			return err
		},
	}
	if editor, can := channels.AsEditor(r.channel); can {
		calls["Edit"] = func(ctx context.Context) error { return editor.Edit(ctx, at, id, plainPart("k", "late")) }
	}
	if files, can := channels.AsFileSender(r.channel); can {
		calls["SendFile"] = func(ctx context.Context) error {
			_, err := files.SendFile(ctx, at, someFile(), plainPart("k3", "late"))
			return err
		}
	}
	for name, call := range calls {
		err := call(channels.WithLeaseCheck(r.Context(), channels.LeaseCheck{
			Asked: time.Now().Add(-time.Hour), Ask: func(context.Context) error { return bus.ErrFenced },
		}))
		if fault := channels.FaultOf(err); err == nil || fault.Fault != channels.Retry {
			r.Errorf("%s after the lease was lost: %v, want %s", name, err, channels.Retry)
		}
		if shown := r.platform.Shown(1); len(shown) != 1 || shown[0].Text != part.Text {
			r.Fatalf("%s after the lease was lost: the chat shows %+v", name, shown)
		}
	}
	for name, call := range calls {
		// A pause before there is a connection must be noticed too.
		var connected, asked atomic.Bool
		ctx := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
		err := call(channels.WithLeaseCheck(ctx, channels.LeaseCheck{
			Asked: time.Now().Add(-time.Hour), Ask: func(context.Context) error {
				asked.Store(connected.Load())
				return nil
			},
		}))
		if err != nil || !asked.Load() {
			r.Errorf("%s while the lease is held: %v; asked for the lease once there was a connection: %v", name, err, asked.Load())
		}
	}
}

func checkSendEnds(r *channelRun) {
	gone, cancel := context.WithCancel(r.Context())
	cancel()
	_, err := r.channel.Send(gone, r.platform.Address(1), plainPart("k", "hi"))
	if fault := r.faultOf("sent too late", err); fault.Fault != channels.Retry || !errors.Is(err, context.Canceled) {
		r.Errorf("what is cancelled before it is sent gives %v, want %s", fault, channels.Retry)
	}
	if shown := r.platform.Shown(1); len(shown) != 0 {
		r.Errorf("the chat shows %+v", shown)
	}
	r.platform.Break(Sending, HangBefore)
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	before := r.platform.Calls(Sending)
	ended := make(chan error, 1)
	go func() {
		_, err := r.channel.Send(ctx, r.platform.Address(1), plainPart("k", "hi"))
		ended <- err
	}()
	r.until("the call", func() bool { return r.platform.Calls(Sending) > before })
	cancel()
	err = r.bounded("cancelled", func() error { return <-ended })
	if fault := r.faultOf("cancelled", err); fault.Fault != channels.Unknown {
		r.Errorf("what is cancelled while it is sent gives %v, want %s", fault, channels.Unknown)
	}
}

// checkLimits has what was rendered within the limits taken as it is: no text is too
// long, and no markup is unreadable, for which an adapter might send it again plain.
func checkLimits(r *channelRun) {
	limits := r.channel.Limits()
	length := limits.Length
	texts := []string{
		strings.Repeat("x", length), strings.Repeat("😀", length), strings.Repeat("<&>*_~`[] ", length/4),
		strings.Repeat("**bold** _italic_ `code` [a link](https://a.example/b?c=d&e=f)\n\n- item\n\n> quote\n\n```go\nx < y\n```\n\n", length/40),
	}
	sent := 0
	for i, text := range texts {
		for n, piece := range markup.Render(text, limits.Dialect, limits.Length) {
			r.send(1, channels.Part{Key: fmt.Sprint("k", i, "/", n), Text: piece.Text, Plain: piece.Plain})
			sent++
		}
	}
	if n := r.platform.Calls(Sending); n != sent {
		r.Errorf("%d parts took %d calls", sent, n)
	}
	if shown := r.platform.Shown(1); len(shown) != sent {
		r.Errorf("the chat shows %d of %d messages", len(shown), sent)
	}
	editor, can := channels.AsEditor(r.channel)
	if !can {
		return
	}
	longest := strings.Repeat("y", length)
	if limits.EditBytes > 0 {
		longest = bytesOf(limits.EditBytes)
	}
	id := r.send(2, plainPart("edited", "hi"))
	if err := editor.Edit(r.Context(), r.platform.Address(2), id, channels.Part{Key: "edited", Text: longest, Plain: longest}); err != nil {
		r.Errorf("the longest edit: %v", err)
	}
}

// bytesOf is a text of that many bytes, in characters of two.
func bytesOf(n int) string { return strings.Repeat("é", n/2) }

func checkTooLong(r *channelRun) {
	limits := r.channel.Limits()
	text := strings.Repeat("x", max(limits.Length, r.TakesUpTo)+1)
	_, err := r.channel.Send(r.Context(), r.platform.Address(1), channels.Part{Key: "k", Text: text, Plain: text})
	if fault := r.faultOf("too long", err); fault.Fault != channels.Rejected {
		r.Errorf("a text that is too long gives %v, want %s", fault, channels.Rejected)
	}
	if editor, can := channels.AsEditor(r.channel); can && limits.EditBytes > 0 {
		id := r.send(1, plainPart("edited", "hi"))
		text := bytesOf(limits.EditBytes + 2)
		err := editor.Edit(r.Context(), r.platform.Address(1), id, channels.Part{Key: "edited", Text: text, Plain: text})
		if fault := r.faultOf("too long for an edit", err); fault.Fault != channels.Rejected {
			r.Errorf("an edit that is too long gives %v, want %s", fault, channels.Rejected)
		}
	}
	files, can := channels.AsFileSender(r.channel)
	if most := channels.CaptionLength(r.channel, limits.Length); can && most != limits.Length {
		for length, taken := range map[int]bool{most: true, most + 1: false} {
			text := strings.Repeat("x", length)
			_, err := files.SendFile(r.Context(), r.platform.Address(2), someFile(), channels.Part{Key: fmt.Sprint("c", length), Text: text, Plain: text})
			if (err == nil) != taken {
				r.Errorf("a text of %d units beside a file: %v, and CaptionLength is %d", length, err, most)
			}
		}
	}
}
