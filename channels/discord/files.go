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

// isVoice is the flag of a message that was spoken.
const isVoice = 1 << 13

// attachments are the files of a message, those that it passes on too. Each is named by
// its message: the addresses that Discord gives run out, and open to whoever has them.
func attachments(m *message) (all []bus.Attachment) {
	add := func(of *message, files []*discordgo.MessageAttachment) {
		for _, f := range files {
			if f == nil || !isID(f.ID) {
				continue
			}
			all = append(all, bus.Attachment{
				Kind: kindOf(of, f), Name: markup.OneLine(path.Base(f.Filename), maxName), Type: markup.OneLine(f.ContentType, maxName), Size: int64(f.Size),
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

// kindOf is the kind of a file, as its sender's side says.
func kindOf(m *message, f *discordgo.MessageAttachment) string {
	kind, _, _ := strings.Cut(f.ContentType, "/")
	switch {
	case m.Flags&isVoice != 0 && kind == "audio":
		return bus.Voice
	case kind == "image":
		return bus.Picture
	case kind == "video":
		return bus.Video
	}
	return bus.Document
}

// Fetch implements channels.Fetcher. It asks for the message anew, and so for an address
// that is good now.
func (c *Channel) Fetch(ctx context.Context, _ bus.Address, a bus.Attachment, most int64) (io.ReadCloser, error) {
	parts := strings.Split(a.Ref, "/")
	if len(parts) != 3 || slices.ContainsFunc(parts, func(id string) bool { return !isID(id) }) {
		return nil, rejected("bad_ref", errors.New("this names no file of Discord's"))
	}
	m := new(message)
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := c.call(call, request{method: http.MethodGet, url: discordgo.EndpointChannelMessage(parts[0], parts[1])}, m); err != nil {
		return nil, err
	}
	address := addressOf(m, parts[2])
	if address == "" {
		return nil, rejected("no_file", errors.New("the message has this file no more"))
	}
	return c.open(ctx, address, most)
}

// addressOf is where a file of a message is; "" if it has none of that id.
func addressOf(m *message, id string) string {
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

// open opens a file where Discord keeps it. The bot's token is not needed there, and does
// not go there.
func (c *Channel) open(ctx context.Context, address string, most int64) (io.ReadCloser, error) {
	if !c.keepsFiles(address) {
		return nil, rejected("bad_address", errors.New("the file is not where Discord keeps files"))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, rejected("bad_address", errors.New("the file's address cannot be read"))
	}
	resp, err := c.files.Do(req)
	if err != nil {
		return nil, &channels.SendError{Fault: channels.Retry, Code: "unreachable", Err: withoutURL(err)}
	}
	if resp.StatusCode == http.StatusOK {
		return &boundedBody{ReadCloser: resp.Body, left: most}, nil
	}
	_ = resp.Body.Close() // nothing in it is of use
	e := &channels.SendError{Fault: channels.Retry, Code: "http_" + strconv.Itoa(resp.StatusCode), Err: fmt.Errorf("HTTP status %d", resp.StatusCode)}
	switch resp.StatusCode {
	case http.StatusNotFound, http.StatusGone, http.StatusUnavailableForLegalReasons:
		e.Fault = channels.Rejected
	case http.StatusTooManyRequests:
		e.Limited = true
	}
	return nil, e
}

// keepsFiles tells whether an address is one of where Discord keeps files, or of the
// server that takes its place.
func (c *Channel) keepsFiles(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.User != nil {
		return false
	}
	return u.Scheme == "https" && (u.Host == "cdn.discordapp.com" || u.Host == "media.discordapp.net") ||
		u.Scheme == c.server.Scheme && u.Host == c.server.Host
}

// A boundedBody gives so many bytes, and then says that there are more.
type boundedBody struct {
	io.ReadCloser
	left int64
}

// Read implements io.Reader.
func (b *boundedBody) Read(into []byte) (int, error) {
	if b.left < 0 {
		return 0, channels.ErrTooLarge
	}
	if int64(len(into)) > b.left+1 {
		into = into[:b.left+1]
	}
	n, err := b.ReadCloser.Read(into)
	if b.left -= int64(n); b.left < 0 {
		return n - 1, channels.ErrTooLarge
	}
	return n, err //nolint:wrapcheck // io.EOF is one
}
