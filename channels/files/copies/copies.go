// Package copies handles the files that agents send: they are copied from a workspace, the message on the bus
// refers to the copies, and the copies are removed once they have been sent.
//
// copies.go copies files from a workspace and gives them to dispatchers, and sweep.go removes files that a crash
// has left. shown.go finds the files that an answer shows as images.
package copies

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"parley/bus"
	"parley/channels"
	"parley/channels/files"
	"parley/sessions/outgoing"
	"parley/tools"
)

// MaxFiles is the maximum number of files in one message.
const MaxFiles = 10

// Files gives access to the files that are waiting to be sent. It is the files.Store of dispatchers.
type Files struct{ Store *outgoing.Store }

// A Dir is a session's directory.
type Dir interface {
	Name(path string) (string, error)
	Open(path string) (fs.File, error)
}

// Messages describes the messages that are to contain files.
type Messages struct {
	Session  string
	Call     string   // the tool call that sends the files
	IDs      []string // ids of the messages on the bus
	MaxBytes int64    // the maximum size of one file
}

// maxAttempts is how many times Keep tries to copy files. A copy may be removed while Keep is running, if an earlier
// attempt at the same call was interrupted and its messages are being sent at the moment.
const maxAttempts = 10

// Keep copies files from a session's directory, and records that the messages refer to them. It may be called again
// with the same messages. The errors that the model should see are *tools.Error.
func (f Files) Keep(ctx context.Context, to Messages, dir Dir, paths []string) (kept []bus.FileRef, err error) {
	for range maxAttempts {
		if kept, err = f.keepAll(ctx, to, dir, paths); err == nil {
			err = f.referAll(to, kept)
		}
		if !errors.Is(err, outgoing.ErrMissing) && !errors.Is(err, files.ErrMissing) {
			break
		}
	}
	return kept, err
}

func (f Files) referAll(to Messages, kept []bus.FileRef) error {
	for _, id := range to.IDs {
		if err := f.Refer(to.Session, id, kept); err != nil {
			return err
		}
	}
	return nil
}

func (f Files) keepAll(ctx context.Context, to Messages, dir Dir, paths []string) ([]bus.FileRef, error) {
	var names []string
	for _, p := range paths {
		name, err := dir.Name(p)
		if err != nil {
			return nil, tools.Errorf(tools.InvalidPath, "%v", err)
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) > MaxFiles {
		return nil, tools.Errorf(tools.InvalidArgs, "%d files are too many: at most %d go with one message. Send several messages, or put them into an archive.", len(names), MaxFiles)
	}
	var kept []bus.FileRef
	for _, name := range names {
		one, err := f.keep(ctx, to, dir, name)
		if err != nil {
			return nil, err
		}
		kept = append(kept, one)
	}
	return kept, nil
}

func (f Files) keep(ctx context.Context, to Messages, dir Dir, name string) (bus.FileRef, error) {
	file, err := dir.Open(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return bus.FileRef{}, tools.Errorf(tools.FileNotFound, "%v: list_directory shows what's there", err)
	case err != nil:
		return bus.FileRef{}, tools.Errorf(tools.InvalidPath, "%v", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	switch {
	case err != nil:
		return bus.FileRef{}, fmt.Errorf("look at a file to be sent: %w", err)
	case info.Size() == 0:
		return bus.FileRef{}, tools.Errorf(tools.InvalidArgs, "%q is empty: there is nothing to send", name)
	case info.Size() > to.MaxBytes:
		return bus.FileRef{}, tooLarge(name, info.Size(), to.MaxBytes)
	}
	kept, err := f.Store.Keep(ctx, to.Session, to.Call, file, to.MaxBytes)
	switch {
	case errors.Is(err, outgoing.ErrTooLarge):
		return bus.FileRef{}, tooLarge(name, to.MaxBytes+1, to.MaxBytes)
	case errors.Is(err, outgoing.ErrFull):
		return bus.FileRef{}, tools.Errorf(tools.ExecutionFailed, "%q cannot be sent now: %v. Try again when the files that were sent before have arrived.", name, err)
	case err != nil:
		return bus.FileRef{}, err
	}
	return bus.FileRef{Name: path.Base(name), Path: name, Size: kept.Size, SHA256: kept.SHA256, Ref: kept.Ref}, nil
}

func tooLarge(name string, size, most int64) *tools.Error {
	return tools.Errorf(tools.InvalidArgs, "%q has %d bytes, and at most %d can be sent there: make it smaller, or send it in pieces", name, size, most)
}

// Read implements files.Store: it returns a file's content, or files.ErrMissing.
func (f Files) Read(file bus.FileRef) ([]byte, error) {
	content, err := f.Store.Read(outgoing.File{Ref: file.Ref, SHA256: file.SHA256, Size: file.Size})
	if errors.Is(err, outgoing.ErrMissing) {
		return nil, files.ErrMissing
	}
	return content, err
}

// Refer implements files.Store: it records that a message needs these files, so that they are not removed.
func (f Files) Refer(session, message string, all []bus.FileRef) error {
	for _, ref := range foldersOf(all) {
		err := f.Store.Refer(outgoing.Reference{Ref: ref, Session: session, Message: message})
		if errors.Is(err, outgoing.ErrMissing) {
			return files.ErrMissing
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Release implements files.Store: it records that a message no longer needs these files; files that no message
// needs are removed.
func (f Files) Release(message string, all []bus.FileRef) error {
	var errs []error
	for _, ref := range foldersOf(all) {
		errs = append(errs, f.Store.Release(ref, message))
	}
	return errors.Join(errs...)
}

// ReleaseSent releases the files of those messages in outs that have already been sent or given up, after an
// earlier attempt at the same tool call. Nobody else would release them: whoever sends a message releases its files
// once the message is finished, and may have done so before this attempt recorded that the message needs them.
// Messages that must still be sent keep their files.
func (f Files) ReleaseSent(ctx context.Context, book channels.Sends, outs []bus.Outbound) error {
	for _, out := range outs {
		sent, err := book.Lookup(ctx, out.ID)
		if errors.Is(err, channels.ErrNoSend) || err == nil && slices.ContainsFunc(sent.Parts, isUnsent) {
			continue
		}
		if err == nil {
			err = f.Release(out.ID, out.Files)
		}
		if err != nil {
			return fmt.Errorf("release the files of %s: %w", out.ID, err)
		}
	}
	return nil
}

// isUnsent reports whether a part of a message must still be sent.
func isUnsent(p channels.SentPart) bool {
	return p.State == channels.Queued || p.State == channels.Sending || p.State == channels.Drafted
}

// foldersOf returns the folders that files are in, each once; all files from one tool call are in the same folder.
func foldersOf(all []bus.FileRef) []string {
	var folders []string
	for _, f := range all {
		if !slices.Contains(folders, f.Ref) {
			folders = append(folders, f.Ref)
		}
	}
	return folders
}

// Remove removes all files of a session that are waiting to be sent, and reports whether there were any.
func (f Files) Remove(ctx context.Context, session string) (bool, error) {
	return f.Store.Remove(ctx, session)
}

// Forget removes the files of messages that were taken off the bus, and of the messages that dispatchers have
// derived from those.
func (f Files) Forget(ctx context.Context, session string, messages []string) error {
	all, err := f.Store.References(ctx, session)
	if err != nil {
		return err
	}
	for _, r := range all {
		gone := slices.ContainsFunc(messages, func(id string) bool { return r.Message == id || strings.HasPrefix(r.Message, id+"~") })
		if !gone {
			continue
		}
		if err := f.Store.Release(r.Ref, r.Message); err != nil {
			return err
		}
	}
	return nil
}
