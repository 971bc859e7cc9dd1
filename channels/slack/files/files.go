// Package files reads which files people share in Slack, and fetches them with the bot's token from Slack's hosts
// only.
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

// Scope is the scope that the bot's token needs for fetching files.
const Scope = "files:read"

// A File is a shared file, as Slack's events and history describe it.
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

// Attachments returns the files that can be fetched: not deleted files, and not files that Slack only links to.
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
		all = append(all, bus.Attachment{Kind: attachmentKind(f), Name: markup.OneLine(f.displayName(), 200), Type: f.Type, Size: f.Size, Ref: at})
	}
	return all
}

// displayName returns a file's name, or its title if it has no name.
func (f File) displayName() string {
	if f.Name != "" {
		return f.Name
	}
	return f.Title
}

// attachmentKind returns a file's kind on the bus.
func attachmentKind(f File) string {
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

// A Fetcher fetches files with the bot's token.
type Fetcher struct {
	api   *url.URL
	token string
	http  *http.Client
}

// New makes a Fetcher for the Web API at that address. The client must not follow
// redirects.
func New(api, token string, client *http.Client) (*Fetcher, error) {
	at, err := url.Parse(api)
	if err != nil {
		return nil, errors.New("the address of the Web API cannot be read")
	}
	return &Fetcher{api: at, token: token, http: client}, nil
}

// Fetch opens a file; at most `most` bytes can be read from it. See channels.Fetcher.
func (f *Fetcher) Fetch(ctx context.Context, a bus.Attachment, most int64) (io.ReadCloser, error) {
	if a.Size > most {
		return nil, channels.ErrTooLarge
	}
	at, err := url.Parse(a.Ref)
	if err != nil || !f.trusts(at) {
		return nil, fetchError(channels.Rejected, "foreign_host", "the file isn't on one of Slack's hosts")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, fetchError(channels.Rejected, "bad_address", "the file's address can't be used")
	}
	req.Header.Set("Authorization", "Bearer "+f.token)
	resp, err := f.http.Do(req)
	if err != nil {
		if outer, ok := errors.AsType[*url.Error](err); ok {
			err = outer.Err
		}
		return nil, &channels.SendError{Fault: channels.Retry, Code: "unreachable", Err: fmt.Errorf("fetch a file: %w", err)}
	}
	if err := answerError(resp, a); err != nil {
		_ = resp.Body.Close() // nobody reads the body of a refusal
		return nil, err
	}
	return channels.LimitReader(resp.Body, most), nil
}

// trusts reports whether the token may be sent to an address: only to Slack's hosts over TLS, and to the configured
// Web API.
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

// answerError returns the error that an answer means; nil if the answer is the file. If the bot may not read the
// file, Slack answers with its sign-in page.
func answerError(resp *http.Response, a bus.Attachment) error {
	shown, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	code := "http_" + strconv.Itoa(resp.StatusCode)
	switch status := resp.StatusCode; {
	case status == http.StatusOK && (shown != "text/html" || a.Type == "text/html"):
		return nil
	case status == http.StatusOK, status >= 300 && status < 400:
		return fetchError(channels.Stop, "missing_scope", "the app lacks the scope "+Scope)
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return fetchError(channels.Stop, code, "Slack rejected the token")
	case status == http.StatusNotFound, status == http.StatusGone:
		return fetchError(channels.Rejected, code, "there's no such file")
	case status == http.StatusTooManyRequests:
		e := fetchError(channels.Retry, "ratelimited", "too many calls")
		e.RateLimited = true
		if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil {
			e.RetryAfter = time.Duration(n) * time.Second
		}
		return e
	}
	return fetchError(channels.Retry, code, "HTTP status "+strconv.Itoa(resp.StatusCode))
}

// fetchError makes the error for a fetch that failed.
func fetchError(fault channels.Fault, code, why string) *channels.SendError {
	return &channels.SendError{Fault: fault, Code: code, Err: errors.New("fetch a file: " + why)}
}
