package discord

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/bwmarrin/discordgo"

	"parley/bus"
	"parley/channels"
	"parley/channels/markup"
)

// voiceMessageFlag is the flag with which Discord marks a voice message.
const voiceMessageFlag = 1 << 13

// attachments returns the files of a message and of the messages that it forwards. Each reference identifies the
// message that contains the file, and not the file's address: the addresses that Discord gives expire, and work for
// anybody who has them.
func attachments(m *message) (all []bus.Attachment) {
	add := func(of *message, files []*discordgo.MessageAttachment) {
		for _, f := range files {
			if f == nil || !isID(f.ID) {
				continue
			}
			all = append(all, bus.Attachment{
				Kind: attachmentKind(of, f), Name: markup.OneLine(path.Base(f.Filename), maxName), Type: markup.OneLine(f.ContentType, maxName), Size: int64(f.Size),
				Ref: m.Channel + "/" + m.ID + "/" + f.ID,
			})
		}
	}
	add(m, m.Attachments)
	for _, s := range m.Snapshots {
		if s.Message != nil {
			add(s.Message, s.Message.Attachments)
		}
	}
	return all
}

// attachmentKind returns a file's kind, as the sender's client declared it.
func attachmentKind(m *message, f *discordgo.MessageAttachment) string {
	kind, _, _ := strings.Cut(f.ContentType, "/")
	switch {
	case m.Flags&voiceMessageFlag != 0 && kind == "audio":
		return bus.Voice
	case kind == "image":
		return bus.Picture
	case kind == "video":
		return bus.Video
	}
	return bus.Document
}

// A downloader fetches files that came with messages.
type downloader struct {
	*api
	client *http.Client // has no token
}

// Fetch implements channels.Fetcher: it opens an attachment, of which at most `most` bytes can be read. It fetches
// the message again, to get an address of the file that is valid now. Its error has the fault Rejected if the file is
// gone.
func (d *downloader) Fetch(ctx context.Context, _ bus.Address, a bus.Attachment, most int64) (io.ReadCloser, error) {
	parts := strings.Split(a.Ref, "/")
	if len(parts) != 3 || slices.ContainsFunc(parts, func(id string) bool { return !isID(id) }) {
		return nil, rejectedError("bad_ref", errors.New("this does not name one of Discord's files"))
	}
	m := new(message)
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := d.call(call, request{method: http.MethodGet, url: discordgo.EndpointChannelMessage(parts[0], parts[1])}, m); err != nil {
		return nil, err
	}
	address := fileURL(m, parts[2])
	if address == "" {
		return nil, rejectedError("no_file", errors.New("the message no longer has this file"))
	}
	return d.openFile(ctx, address, most)
}

// fileURL returns the address of a message's file; "" if the message has no file with that id.
func fileURL(m *message, id string) string {
	all := slices.Clone(m.Attachments)
	for _, s := range m.Snapshots {
		if s.Message != nil {
			all = append(all, s.Message.Attachments...)
		}
	}
	i := slices.IndexFunc(all, func(f *discordgo.MessageAttachment) bool { return f != nil && f.ID == id })
	if i < 0 {
		return ""
	}
	return all[i].URL
}

// openFile opens a file on Discord's file hosts, and refuses an address that isn't a file's (see isFileURL). The hosts do
// not need the bot's token, so it is not sent.
func (d *downloader) openFile(ctx context.Context, address string, most int64) (io.ReadCloser, error) {
	if !d.isFileURL(address) {
		return nil, rejectedError("bad_address", errors.New("the file is not where Discord keeps files"))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, rejectedError("bad_address", errors.New("the file's address can't be read"))
	}
	resp, err := d.client.Do(req)
	if err != nil {
		return nil, &channels.SendError{Fault: channels.Retry, Code: "unreachable", Err: withoutURL(err)}
	}
	if resp.StatusCode == http.StatusOK {
		return &boundedBody{ReadCloser: resp.Body, remaining: most}, nil
	}
	_ = resp.Body.Close() // nobody reads the body of a refusal
	e := &channels.SendError{Fault: channels.Retry, Code: "http_" + strconv.Itoa(resp.StatusCode), Err: fmt.Errorf("HTTP status %d", resp.StatusCode)}
	switch resp.StatusCode {
	case http.StatusNotFound, http.StatusGone, http.StatusUnavailableForLegalReasons:
		e.Fault = channels.Rejected
	case http.StatusTooManyRequests:
		e.RateLimited = true
	}
	return nil, e
}

// isFileURL reports whether an address belongs to Discord's file hosts, or to the server that is configured in
// place of Discord.
func (d *downloader) isFileURL(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.User != nil {
		return false
	}
	return u.Scheme == "https" && (u.Host == "cdn.discordapp.com" || u.Host == "media.discordapp.net") ||
		u.Scheme == d.apiURL.Scheme && u.Host == d.apiURL.Host
}

// A boundedBody allows reading up to left bytes, and then fails with channels.ErrTooLarge if there are more.
type boundedBody struct {
	io.ReadCloser
	remaining int64
}

// Read implements io.Reader within the limit.
func (b *boundedBody) Read(into []byte) (int, error) {
	if b.remaining < 0 {
		return 0, channels.ErrTooLarge
	}
	if int64(len(into)) > b.remaining+1 {
		into = into[:b.remaining+1]
	}
	n, err := b.ReadCloser.Read(into)
	if b.remaining -= int64(n); b.remaining < 0 {
		return n - 1, channels.ErrTooLarge
	}
	return n, err //nolint:wrapcheck // io.EOF is one
}
