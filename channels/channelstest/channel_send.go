package channelstest

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"parley/bus"
	"parley/channels"
)

// plainPart returns a part without markup. It contains PersonWords, so that a check that sends it can search errors and
// the log for them.
func plainPart(key, text string) channels.Part {
	text += " " + PersonWords
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
		if len(shown) != i+1 || shown[i].Text != fmt.Sprint("m", i, " ", PersonWords) || shown[i].ID != id && shown[i].ID != "" {
			r.Fatalf("message %d was sent as %s, and the chat shows %+v", i, id, shown)
		}
	}
}

// checkUnreachable uses a channel without open connections, because nobody can tell whether a call has arrived on a
// connection that is just being closed.
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

// checkFound compares the result of FindSent with what the chat shows. For a part that has not arrived, FindSent
// may also return an error.
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
			CheckedAt: time.Now().Add(-time.Hour), Check: func(context.Context) error { return bus.ErrFenced },
		}))
		if fault := channels.FaultOf(err); err == nil || fault.Fault != channels.Retry {
			r.Errorf("%s after the lease was lost: %v, want %s", name, err, channels.Retry)
		}
		if shown := r.platform.Shown(1); len(shown) != 1 || shown[0].Text != part.Text {
			r.Fatalf("%s after the lease was lost: the chat shows %+v", name, shown)
		}
	}
	for name, call := range calls {
		// A pause before the connection exists must be noticed too.
		var connected, asked atomic.Bool
		ctx := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
		err := call(channels.WithLeaseCheck(ctx, channels.LeaseCheck{
			CheckedAt: time.Now().Add(-time.Hour), Check: func(context.Context) error {
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
	err = r.mustEnd("cancelled", func() error { return <-ended })
	if fault := r.faultOf("cancelled", err); fault.Fault != channels.Unknown {
		r.Errorf("what is cancelled while it is sent gives %v, want %s", fault, channels.Unknown)
	}
}
