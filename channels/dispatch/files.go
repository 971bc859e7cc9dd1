package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"parley/bus"
	"parley/channels"
	"parley/channels/files"
)

// mostFiles is how many files are sent at once; each of them is in memory.
const mostFiles = 4

// A fileSending sends the files of messages, leaves out those that cannot be sent, and says by whom
// stored files are still needed.
type fileSending struct {
	channel channels.Channel
	store   files.Store // nil where messages name no stored files
	notices *notices
	ledger  *ledger
	atOnce  chan struct{} // holds one value for each file in memory
	point   func(string)
	log     *slog.Logger
}

// send sends the file of a part. It bounds how many files are in memory at a time.
func (f *fileSending) send(ctx context.Context, d *delivery, i int, part channels.Part) (id string, err error) {
	s, can := channels.AsFileSender(f.channel)
	e, has := d.fileOf(i)
	if !can || !has {
		return "", &channels.SendError{Fault: channels.Rejected, Code: cannotSendFiles}
	}
	select {
	case f.atOnce <- struct{}{}:
		defer func() { <-f.atOnce }()
	case <-ctx.Done():
		return "", &channels.SendError{Fault: channels.Retry, Code: "busy", Err: ctx.Err()}
	}
	file, err := e.Load(f.store)
	switch {
	case errors.Is(err, files.ErrMissing):
		return "", &channels.SendError{Fault: channels.Rejected, Code: fileMissing, Err: err}
	case err != nil:
		return "", &channels.SendError{Fault: channels.Retry, Code: "file_unreadable", Err: err}
	}
	return s.SendFile(ctx, d.to, file, part)
}

// mayLeaveOut reports whether a message may go on without the file of a part: the message
// only names the file, and the file is missing or the platform refuses it but not the
// place.
func (f *fileSending) mayLeaveOut(d *delivery, i int, code string) bool {
	e, ok := d.fileOf(i)
	return ok && (e.IsReference() || e.IsText()) && d.record.Parts[i].Text == "" && (code == fileMissing || isAboutContent(f.channel, code))
}

// leaveOut lets a message go on without a file, and sees to it that its session and its chat are
// told. A long text that was a file is said in ordinary messages instead.
func (f *fileSending) leaveOut(work context.Context, d *delivery, i int, code string) error {
	if err := f.ledger.clearance.checkLease(work, d); err != nil {
		return err
	}
	e, _ := d.fileOf(i)
	switch {
	case e.IsText():
		if err := f.notices.wholeText(work, d); err != nil {
			return err
		}
	default:
		why := "it is not there any more"
		if code != fileMissing {
			why = reasonInWords(f.channel, code)
		} else {
			f.log.Error("a file that a message names is not there; who sends needs the directory in which workers work (workspace.root)",
				slog.String("id", d.record.ID), slog.Int("part", i))
		}
		if err := f.notices.withoutFile(work, d, i, e.Name, why); err != nil {
			return err
		}
		f.point("send:leftout")
	}
	p := d.record.Parts[i]
	p.State, p.Code = channels.Failed, leftOutPrefix+code
	return f.ledger.mark(work, d, i, p)
}

// refer records that another message (out) names the files of this one, so that they are kept
// for it. If they no longer exist, that message will say so.
func (f *fileSending) refer(out bus.Outbound) error {
	if len(out.Files) == 0 || f.store == nil {
		return nil
	}
	if err := f.store.Refer(out.Session, out.ID, out.Files); err != nil && !errors.Is(err, files.ErrMissing) {
		return fmt.Errorf("refer to files: %w", err)
	}
	return nil
}

// release records that a finished message no longer needs the files that it names. If that
// fails, a later sweep removes them.
func (f *fileSending) release(d *delivery) {
	if len(d.out.Files) == 0 || f.store == nil {
		return
	}
	if err := f.store.Release(d.record.ID, d.out.Files); err != nil {
		f.log.Warn("files of a message that is through could not be removed", slog.String("id", d.record.ID), slog.Any("error", err))
	}
	f.point("send:released")
}
