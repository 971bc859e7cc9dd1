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

// maxFiles is the number of files that may be sent at the same time; each of them is in memory.
const maxFiles = 4

// A fileSending sends the files that belong to messages, leaves out those that can't be sent, and records which
// messages still need stored files.
type fileSending struct {
	channel  channels.Channel
	store    files.Store // nil where messages name no stored files
	notices  *notices
	ledger   *ledger
	inMemory chan struct{} // holds one value for each file in memory
	point    func(string)
	log      *slog.Logger
}

// send sends the file of a part. It limits how many files are in memory at the same time. Its error has the fault
// Rejected if the channel sends no files, or if the file is missing.
func (f *fileSending) send(ctx context.Context, d *delivery, i int, part channels.Part) (id string, err error) {
	s, can := channels.AsFileSender(f.channel)
	e, has := d.fileOf(i)
	if !can || !has {
		return "", &channels.SendError{Fault: channels.Rejected, Code: codeCannotSendFiles}
	}
	select {
	case f.inMemory <- struct{}{}:
		defer func() { <-f.inMemory }()
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

// mayLeaveOut reports whether a message may go out without the file of a part: the message only names the file, or
// the file is a long text; the part has no text; and the file is missing, or the platform refuses it but not the place.
func (f *fileSending) mayLeaveOut(d *delivery, i int, code string) bool {
	e, ok := d.fileOf(i)
	return ok && (e.IsReference() || e.IsText()) && d.record.Parts[i].Text == "" && (code == fileMissing || isAboutContent(f.channel, code))
}

// leaveOut lets a message go out without a file, and tells its session and its chat. If the file is a long text, it
// is published as ordinary messages instead.
func (f *fileSending) leaveOut(work context.Context, d *delivery, i int, code string) error {
	if err := f.ledger.clearance.checkLease(work, d); err != nil {
		return err
	}
	e, _ := d.fileOf(i)
	switch {
	case e.IsText():
		if err := f.notices.publishWholeText(work, d); err != nil {
			return err
		}
	default:
		why := "it's no longer there"
		if code != fileMissing {
			why = reasonInWords(f.channel, code)
		} else {
			f.log.Error("a file that a message names is not there; who sends needs the directory in which workers work (workspace.root)",
				slog.String("id", d.record.ID), slog.Int("part", i))
		}
		if err := f.notices.tellFileLeftOut(work, d, i, e.Name, why); err != nil {
			return err
		}
		f.point("send:leftout")
	}
	p := d.record.Parts[i]
	p.State, p.Code = channels.Failed, leftOutPrefix+code
	return f.ledger.mark(work, d, i, p)
}

// refer records that another message (out) names the files of this one, so that they are kept for it. If the files
// no longer exist, sending that message will report it.
func (f *fileSending) refer(out bus.Outbound) error {
	if len(out.Files) == 0 || f.store == nil {
		return nil
	}
	if err := f.store.Refer(out.Session, out.ID, out.Files); err != nil && !errors.Is(err, files.ErrMissing) {
		return fmt.Errorf("refer to files: %w", err)
	}
	return nil
}

// release records that a finished message no longer needs the files that it names. If that fails, a later sweep
// removes them.
func (f *fileSending) release(d *delivery) {
	if len(d.out.Files) == 0 || f.store == nil {
		return
	}
	if err := f.store.Release(d.record.ID, d.out.Files); err != nil {
		f.log.Warn("files of a message that is through could not be removed", slog.String("id", d.record.ID), slog.Any("error", err))
	}
	f.point("send:released")
}
