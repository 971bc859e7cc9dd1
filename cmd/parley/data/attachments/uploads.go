package attachments

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"parley/bus"
	"parley/channels"
	"parley/sessions"
	"parley/sessions/outgoing"
)

// Uploads stores the files that people send from a terminal, and programs over HTTP, until they are
// fetched into the session's workspace like a platform's files. It takes the place of the platform:
// it is the channels.Fetcher of these channels. Processes that share the workspaces share the files.
type Uploads struct {
	Store *outgoing.Store
	Log   sessions.Reader
}

var _ channels.Fetcher = Uploads{}

// ErrFull says that too many bytes of a session are already waiting to be fetched.
var ErrFull = errors.New("too many bytes are already waiting to be fetched")

// maxTries is how often Keep tries at most: another process may remove the message's folder while Keep
// writes into it.
const maxTries = 10

// Keep stores the files of a message in a session, and returns them as the message's attachments. The message may be
// published after that. Keep may be called again for the same message. It returns ErrFull if the session's files that
// wait to be fetched would have too many bytes.
func (u Uploads) Keep(ctx context.Context, session, message string, all []bus.File) (kept []bus.Attachment, err error) {
	if err := u.releaseFetched(ctx, session); err != nil {
		return nil, err
	}
	for range maxTries {
		if kept, err = u.keep(ctx, session, message, all); !errors.Is(err, outgoing.ErrMissing) {
			break
		}
	}
	if errors.Is(err, outgoing.ErrFull) {
		return nil, ErrFull
	}
	return kept, err
}

func (u Uploads) keep(ctx context.Context, session, message string, all []bus.File) ([]bus.Attachment, error) {
	var kept []bus.Attachment
	for _, f := range all {
		k, err := u.Store.Keep(ctx, session, message, bytes.NewReader(f.Data), int64(len(f.Data)))
		if err != nil {
			return nil, err
		}
		typ := http.DetectContentType(f.Data)
		kept = append(kept, bus.Attachment{
			Kind: kindOf(typ), Name: f.Name, Type: typ, Size: k.Size, Ref: strings.Join([]string{k.Ref, k.SHA256, strconv.FormatInt(k.Size, 10)}, "/"),
		})
	}
	if len(kept) == 0 {
		return nil, nil
	}
	return kept, u.Store.Refer(outgoing.Reference{Ref: outgoing.RefOf(session, message), Session: session, Message: message})
}

// kindOf returns the kind of an attachment, by its MIME type.
func kindOf(typ string) string {
	switch class, _, _ := strings.Cut(typ, "/"); class {
	case "image":
		return bus.Picture
	case "video":
		return bus.Video
	}
	return bus.Document
}

// Fetch implements channels.Fetcher: it opens a file that Keep has stored.
func (u Uploads) Fetch(_ context.Context, _ bus.Address, a bus.Attachment, most int64) (io.ReadCloser, error) {
	gone := &channels.SendError{Fault: channels.Rejected, Code: "missing"}
	parts := strings.Split(a.Ref, "/") // SESSION/MESSAGE/SUM/SIZE, as keep has written it
	if len(parts) != 4 {
		return nil, gone
	}
	size, err := strconv.ParseInt(parts[3], 10, 64)
	if err != nil || size < 0 {
		return nil, gone
	}
	if size > most {
		return nil, channels.ErrTooLarge
	}
	raw, err := u.Store.Read(outgoing.File{Ref: parts[0] + "/" + parts[1], SHA256: parts[2], Size: size})
	if errors.Is(err, outgoing.ErrMissing) {
		return nil, gone
	}
	if err != nil {
		return nil, fmt.Errorf("read a file that was uploaded: %w", err)
	}
	return io.NopCloser(bytes.NewReader(raw)), nil
}

// releaseFetched releases the files of those messages in a session whose files are already in its workspace, or whose
// turn is over, to make room for new ones. A sweep takes care of all others.
func (u Uploads) releaseFetched(ctx context.Context, session string) error {
	waiting, err := u.Store.References(ctx, session)
	if err != nil {
		return err
	}
	for _, r := range waiting {
		done, err := u.isFetched(ctx, session, r.Message)
		if err == nil && done {
			err = u.Store.Release(r.Ref, r.Message)
		}
		if err != nil {
			return fmt.Errorf("release files that were uploaded: %w", err)
		}
	}
	return nil
}

// isFetched reports whether the session's log says for all files of a message what became of them, or that the
// message's turn is over.
func (u Uploads) isFetched(ctx context.Context, session, message string) (bool, error) {
	said, err := u.Log.Find(ctx, session, message)
	if errors.Is(err, sessions.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	open, came := map[int64]bool{}, false
	for e, err := range u.Log.Read(ctx, session, said.N) {
		if err != nil {
			return false, err
		}
		switch e.Kind {
		case sessions.KindAttached:
			a, err := sessions.Decode[sessions.Attached](e)
			if err != nil {
				return false, err
			}
			if a.Message == message {
				open[e.N], came = true, true
			}
		case sessions.KindFetched:
			f, err := sessions.Decode[sessions.Fetched](e)
			if err != nil {
				return false, err
			}
			delete(open, f.Attached)
		case sessions.KindTurnDone:
			if e.Turn == said.Turn {
				return true, nil
			}
		}
		if came && len(open) == 0 {
			return true, nil
		}
	}
	return false, nil
}
