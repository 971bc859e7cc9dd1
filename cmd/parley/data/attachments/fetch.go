package attachments

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path"
	"time"

	"parley/agent"
	"parley/agent/ownfiles"
	"parley/agent/pictures"
	"parley/agent/transcribe"
	"parley/bus"
	"parley/channels"
	"parley/sessions"
	"parley/sessions/workspace"
	"parley/tools"
	"parley/tools/guard"
)

const (
	fetchTries   = 4
	fetchTimeout = 5 * time.Minute        // the time for one attempt to download a file
	minWait      = 500 * time.Millisecond // the wait before the second attempt; it doubles before each further one
	maxWait      = 30 * time.Second       // the longest wait that a platform can ask for
	writeTries   = 3                      // how often a write that came too late is attempted
)

// A goneError says why a file is no longer available, in words for people and models.
type goneError struct{ why string }

// Error returns the reason.
func (e *goneError) Error() string { return e.why }

// newGoneError returns the error for a file that is no longer available, with a reason.
func newGoneError(format string, args ...any) error { return &goneError{fmt.Sprintf(format, args...)} }

// Fetch downloads a file that came with a message into its session's workspace. A repeated call writes the same
// file again. If the file is unavailable, the result's Problem says why. An error means that nothing is decided
// yet, for example because the session was lost to another process or ctx has ended.
func (k *Keeper) Fetch(ctx context.Context, f agent.FileToFetch) (sessions.Fetched, error) {
	raw, err := k.download(ctx, f)
	if err == nil {
		var got sessions.Fetched
		if got, err = k.keep(ctx, f, raw); err == nil {
			return got, nil
		}
	}
	if why, ok := errors.AsType[*goneError](err); ok {
		return sessions.Fetched{Problem: why.why}, nil
	}
	return sessions.Fetched{}, err
}

// download reads a file from its platform, with up to fetchTries attempts.
func (k *Keeper) download(ctx context.Context, f agent.FileToFetch) ([]byte, error) {
	fetcher, most := k.cfg.Fetcher(f.At.Channel)
	switch {
	case fetcher == nil:
		return nil, newGoneError("this channel can't fetch files")
	case f.Size > most:
		return nil, tooLarge(most)
	}
	select { // a slot, which limits downloads at a time
	case k.slots <- struct{}{}:
		defer func() { <-k.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	wait := minWait
	for try := 1; ; try++ {
		raw, err := k.tryDownload(ctx, fetcher, f, most)
		if err == nil || ctx.Err() != nil {
			return raw, errors.Join(err, ctx.Err())
		}
		refused, _ := errors.AsType[*channels.SendError](err)
		if errors.Is(err, channels.ErrTooLarge) {
			return nil, tooLarge(most)
		}
		k.cfg.Log.Warn("a file that came with a message cannot be fetched", slog.String("session", f.Session), slog.Int64("entry", f.N),
			slog.Int("try", try), slog.Any("error", err))
		if refused != nil && refused.Fault == channels.Rejected {
			return nil, newGoneError("%s no longer has it, or won't give it to me", f.At.Channel)
		}
		if refused != nil && refused.Fault == channels.Stop {
			return nil, newGoneError("%s won't let me fetch it", f.At.Channel)
		}
		if try == fetchTries {
			return nil, newGoneError("I asked %d times, but %s didn't send it", try, f.At.Channel)
		}
		pause := wait
		if refused != nil {
			pause = min(max(wait, refused.RetryAfter), maxWait)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		wait *= 2
	}
}

func tooLarge(most int64) error {
	return newGoneError("it's larger than the %d MB that I may fetch", most>>20)
}

// tryDownload tries once to read a file from its platform; the file may have at most most bytes.
func (k *Keeper) tryDownload(ctx context.Context, from channels.Fetcher, f agent.FileToFetch, most int64) (raw []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	r, err := from.Fetch(ctx, f.At, bus.Attachment{Kind: f.Kind, Name: f.Name, Type: f.Type, Size: f.Size, Ref: f.Ref}, most)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	var b bytes.Buffer
	n, err := io.Copy(&b, io.LimitReader(r, most+1))
	if err == nil && n > most {
		err = channels.ErrTooLarge
	}
	return b.Bytes(), err
}

// keep writes a file into the workspace, marked as possibly written by strangers. For a picture it also stores the
// copy that the model is shown, and for a voice message its text.
func (k *Keeper) keep(ctx context.Context, f agent.FileToFetch, raw []byte) (sessions.Fetched, error) {
	if len(raw) == 0 {
		return sessions.Fetched{}, newGoneError("it's empty")
	}
	sum := sha256.Sum256(raw)
	got := sessions.Fetched{Type: typeOf(raw, f.Name, f.Type), Size: int64(len(raw)), Hash: hex.EncodeToString(sum[:])}
	got.Path = fmt.Sprintf("%s/%d-%s", ownfiles.Attachments, f.N, safeName(f.Name, f.Kind, got.Type))
	err := k.writeInTime(ctx, f, func(dir *workspace.Dir) error {
		if err := guard.ChangeMarks(dir, false, []string{got.Path}, nil); err != nil {
			return err
		}
		return dir.Write(got.Path, raw)
	})
	if errors.Is(err, workspace.ErrQuota) {
		return got, newGoneError("there's no room for it in this conversation's folder")
	}
	if err == nil {
		err = k.addPicture(ctx, f, &got, raw)
	}
	if err != nil {
		return got, fmt.Errorf("keep a file that came with a message: %w", err)
	}
	if f.Kind == bus.Voice {
		k.transcribe(ctx, f, &got, raw)
	}
	return got, ctx.Err()
}

// writable opens the workspace for writing, after checking that this process still holds the session's lease.
func (k *Keeper) writable(ctx context.Context, f agent.FileToFetch) (*workspace.Dir, error) {
	held := time.Now()
	if err := f.CheckLease(ctx); err != nil {
		return nil, fmt.Errorf("before keeping a file that came with a message: %w", err)
	}
	return k.cfg.Writable(ctx, tools.Call{Session: f.Session, Turn: f.Turn, HeldAt: held})
}

// writeInTime calls write with the workspace, and calls it again if the write came too late because the machine was
// paused or is busy: this process may still hold the session.
func (k *Keeper) writeInTime(ctx context.Context, f agent.FileToFetch, write func(*workspace.Dir) error) error {
	for try := 1; ; try++ {
		dir, err := k.writable(ctx, f)
		if err != nil {
			return err
		}
		if err = write(dir); try == writeTries || ctx.Err() != nil || !errors.Is(err, workspace.ErrLate) {
			return err
		}
	}
}

// transcribe adds to got the words of a voice message, or why they are unknown. The words in a forwarded message
// count as somebody else's, not as the sender's.
func (k *Keeper) transcribe(ctx context.Context, f agent.FileToFetch, got *sessions.Fetched, raw []byte) {
	var transcriber Transcriber
	if k.cfg.Transcriber != nil {
		transcriber = k.cfg.Transcriber()
	}
	if transcriber == nil {
		got.UnheardReason = "no transcription server is set up"
		return
	}
	words, err := transcriber.Words(ctx, path.Base(got.Path), raw)
	switch {
	case err != nil:
		k.cfg.Log.Warn("a voice message cannot be written down", slog.String("session", f.Session), slog.Int64("entry", f.N), slog.Any("error", err))
		got.UnheardReason = "the transcription server can't be reached, or failed"
		if errors.Is(err, transcribe.ErrRefused) {
			got.UnheardReason = "the transcription server refused it"
		}
	case words == "":
		got.UnheardReason = "I heard no words in it"
	default:
		got.SpokenWords, got.Untrusted = words, f.Forwarded || f.Quoted
	}
}

// Discard removes these files, which came with messages, from a session's workspace. Missing files are not an
// error.
func (k *Keeper) Discard(ctx context.Context, session string, paths []string) error {
	dir, err := k.cfg.Writable(ctx, tools.Call{Session: session, HeldAt: time.Now()})
	if err != nil {
		return err
	}
	for _, path := range paths {
		if err := dir.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrInvalid) {
			return fmt.Errorf("remove a file that came with a message: %w", err)
		}
	}
	if err := guard.DropMarks(dir, paths); err != nil {
		return fmt.Errorf("drop the marks of files that came with a message: %w", err)
	}
	return nil
}

// addPicture adds to got the picture that the model is shown, if the file is a picture and can be shown. Otherwise
// the file is treated like any other. An error means that this process may have lost the session. The picture is
// scaled before the time for writing it begins, because scaling may take long.
func (k *Keeper) addPicture(ctx context.Context, f agent.FileToFetch, got *sessions.Fetched, raw []byte) error {
	if !pictures.IsPicture(raw) {
		return nil
	}
	var kept pictures.StoredPicture
	fitting, unfit := k.fitter.Fit(ctx, raw)
	if unfit == nil {
		err := k.writeInTime(ctx, f, func(dir *workspace.Dir) error {
			kept, unfit = pictures.Store(dir, fitting)
			return unfit
		})
		if err != nil && !errors.Is(err, unfit) { // it is unknown whether this process still holds the session
			return err
		}
	}
	if unfit != nil {
		k.cfg.Log.Warn("a picture that came with a message cannot be shown", slog.String("session", f.Session), slog.Int64("entry", f.N), slog.Any("error", unfit))
		return nil
	}
	got.Picture = &sessions.Picture{Path: got.Path, View: kept.View, Hash: kept.Hash, Type: kept.Type}
	return nil
}
