// Package files reads what people share in Slack, and fetches it with the bot's token from Slack's hosts alone.
package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/markup"
)

// Scope is the scope of the bot's token that fetching needs.
const Scope = "files:read"

// A File is one that was shared, as events and history show it.
type File struct {
	Name     string `json:"name"`
	Title    string `json:"title"`
	Type     string `json:"mimetype"`
	Subtype  string `json:"subtype"`
	Mode     string `json:"mode"`
	Size     int64  `json:"size"`
	URL      string `json:"url_private"`
	Download string `json:"url_private_download"`
}

// Attachments are the files that can be fetched: not those that were deleted, and none
// that Slack only links to.
func Attachments(shared []File) []bus.Attachment {
	var all []bus.Attachment
	for _, f := range shared {
		at := f.Download
		if at == "" {
			at = f.URL
		}
		if at == "" || f.Mode == "tombstone" || f.Mode == "external" || f.Mode == "hidden_by_limit" {
			continue
		}
		all = append(all, bus.Attachment{Kind: kind(f), Name: markup.OneLine(f.called(), 200), Type: f.Type, Size: f.Size, Ref: at})
	}
	return all
}

func (f File) called() string {
	if f.Name != "" {
		return f.Name
	}
	return f.Title
}

func kind(f File) string {
	major, _, _ := strings.Cut(f.Type, "/")
	switch {
	case f.Subtype == "slack_audio":
		return bus.Voice
	case f.Subtype == "slack_video", major == "video":
		return bus.Video
	case major == "image":
		return bus.Picture
	}
	return bus.Document
}

// A Fetcher fetches files.
type Fetcher struct {
	api   *url.URL
	token string
	http  *http.Client
}

// New makes a Fetcher for the Web API at that address. The client follows no redirects.
func New(api, token string, client *http.Client) (*Fetcher, error) {
	at, err := url.Parse(api)
	if err != nil {
		return nil, errors.New("the address of the Web API cannot be read")
	}
	return &Fetcher{api: at, token: token, http: client}, nil
}

// Fetch opens a file. See channels.Fetcher.
func (f *Fetcher) Fetch(ctx context.Context, a bus.Attachment, most int64) (io.ReadCloser, error) {
	if a.Size > most {
		return nil, channels.ErrTooLarge
	}
	at, err := url.Parse(a.Ref)
	if err != nil || !f.trusts(at) {
		return nil, failed(channels.Rejected, "foreign_host", "the file is not at one of Slack's hosts")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, failed(channels.Rejected, "bad_address", "the file's address cannot be used")
	}
	req.Header.Set("Authorization", "Bearer "+f.token)
	resp, err := f.http.Do(req)
	if err != nil {
		if outer, ok := errors.AsType[*url.Error](err); ok {
			err = outer.Err
		}
		return nil, &channels.SendError{Fault: channels.Retry, Code: "unreachable", Err: fmt.Errorf("fetch a file: %w", err)}
	}
	if err := refusal(resp, a); err != nil {
		_ = resp.Body.Close() // what it says is for nobody
		return nil, err
	}
	return channels.Bounded(resp.Body, most), nil
}

// trusts reports whether the token may be sent to an address: one of Slack's, over TLS, or
// that of the Web API that is configured.
func (f *Fetcher) trusts(at *url.URL) bool {
	if at.User != nil {
		return false
	}
	if at.Scheme == f.api.Scheme && at.Host == f.api.Host {
		return true
	}
	host := strings.ToLower(at.Hostname())
	return at.Scheme == "https" && at.Port() == "" && (host == "slack.com" || strings.HasSuffix(host, ".slack.com") || strings.HasSuffix(host, ".slack-files.com"))
}

// refusal says what is wrong with an answer. To who may not read the file Slack shows
// its page to sign in.
func refusal(resp *http.Response, a bus.Attachment) error {
	shown, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	code := "http_" + strconv.Itoa(resp.StatusCode)
	switch status := resp.StatusCode; {
	case status == http.StatusOK && (shown != "text/html" || a.Type == "text/html"):
		return nil
	case status == http.StatusOK, status >= 300 && status < 400:
		return failed(channels.Stop, "missing_scope", "the app lacks the scope "+Scope)
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return failed(channels.Stop, code, "the token is refused")
	case status == http.StatusNotFound, status == http.StatusGone:
		return failed(channels.Rejected, code, "there is no such file")
	case status == http.StatusTooManyRequests:
		e := failed(channels.Retry, "ratelimited", "too many calls")
		e.Limited = true
		if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
			e.RetryAfter = time.Duration(n) * time.Second
		}
		return e
	}
	return failed(channels.Retry, code, "HTTP status "+strconv.Itoa(resp.StatusCode))
}

func failed(fault channels.Fault, code, why string) *channels.SendError {
	return &channels.SendError{Fault: fault, Code: code, Err: errors.New("fetch a file: " + why)}
}
