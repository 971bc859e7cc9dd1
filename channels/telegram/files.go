package telegram

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/go-telegram/bot/models"

	"parley/bus"
	"parley/channels"
	"parley/channels/markup"
)

// maxDownload is the size, in bytes, of the largest file that Telegram's own server lets bots download.
const maxDownload = 20 << 20

// filesOf returns the files of a message. It leaves out the document of an animation, which has the same content.
func filesOf(m *models.Message) []bus.Attachment {
	switch {
	case len(m.Photo) > 0:
		largest := m.Photo[0]
		for _, p := range m.Photo {
			if p.Width*p.Height > largest.Width*largest.Height {
				largest = p
			}
		}
		return oneAttachment(bus.Picture, "", "image/jpeg", int64(largest.FileSize), largest.FileID)
	case m.Voice != nil:
		return oneAttachment(bus.Voice, "", m.Voice.MimeType, m.Voice.FileSize, m.Voice.FileID)
	case m.Audio != nil:
		return oneAttachment(bus.Document, m.Audio.FileName, m.Audio.MimeType, m.Audio.FileSize, m.Audio.FileID)
	case m.VideoNote != nil:
		return oneAttachment(bus.Video, "", "video/mp4", int64(m.VideoNote.FileSize), m.VideoNote.FileID)
	case m.Video != nil:
		return oneAttachment(bus.Video, m.Video.FileName, m.Video.MimeType, m.Video.FileSize, m.Video.FileID)
	case m.Animation != nil:
		return oneAttachment(bus.Video, m.Animation.FileName, m.Animation.MimeType, m.Animation.FileSize, m.Animation.FileID)
	case m.Document != nil:
		return oneAttachment(bus.Document, m.Document.FileName, m.Document.MimeType, m.Document.FileSize, m.Document.FileID)
	}
	return nil
}

// oneAttachment returns a list with one file; nil if the file has no id.
func oneAttachment(kind, name, typ string, size int64, id string) []bus.Attachment {
	if id == "" {
		return nil
	}
	return []bus.Attachment{{Kind: kind, Name: markup.OneLine(name, 200), Type: typ, Size: size, Ref: id}}
}

// A downloader fetches files that people have sent.
type downloader struct{ *api }

// Fetch implements channels.Fetcher: it asks Telegram where a file is now, and downloads up to `most` bytes of it.
// The file's address contains the bot's token.
func (d *downloader) Fetch(ctx context.Context, _ bus.Address, a bus.Attachment, most int64) (io.ReadCloser, error) {
	if a.Size > most || a.Size > maxDownload && d.isOfficialServer {
		return nil, channels.ErrTooLarge
	}
	var file struct {
		Path string `json:"file_path"`
		Size int64  `json:"file_size"`
	}
	err := d.call(ctx, "getFile", map[string]string{"file_id": a.Ref}, &file)
	if refusal, ok := errors.AsType[*channels.SendError](err); ok && refusal.Code == strconv.Itoa(http.StatusBadRequest) {
		refusal.Fault = channels.Rejected // the same call would fail again
	}
	switch {
	case err != nil:
		return nil, err
	case file.Size > most:
		return nil, channels.ErrTooLarge
	case file.Path == "" || path.IsAbs(file.Path) || path.Clean(file.Path) != file.Path || strings.HasPrefix(file.Path, "../") || strings.ContainsAny(file.Path, "?#%\\"):
		return nil, &channels.SendError{Fault: channels.Rejected, Code: "no_path", Err: errors.New("getFile: names no file that can be downloaded")}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.fileBase+file.Path, nil)
	if err != nil {
		return nil, fmt.Errorf("prepare a download: %w", withoutURL(err))
	}
	resp, err := d.http.Do(req)
	if err != nil {
		return nil, unreachableError("download", err)
	}
	if resp.StatusCode == http.StatusOK {
		return channels.LimitReader(resp.Body, most), nil
	}
	_ = resp.Body.Close() // nobody reads the body of a refusal
	e := &channels.SendError{Fault: channels.Retry, Code: "http_" + strconv.Itoa(resp.StatusCode), Err: fmt.Errorf("download: HTTP status %d", resp.StatusCode)}
	switch resp.StatusCode {
	case http.StatusNotFound, http.StatusGone, http.StatusForbidden:
		e.Fault = channels.Rejected
	case http.StatusUnauthorized:
		e.Fault = channels.Stop
	}
	return nil, e
}
