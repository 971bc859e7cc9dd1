package web

import (
	"context"
	"io"
	"strings"

	"parley/tools"
	"parley/tools/documents/pages"
)

// maxConverting limits how many pages are turned into Markdown at once, because each takes some
// tens of megabytes during that.
const maxConverting = 4

// A fetcher is the tool web_fetch.
type fetcher struct {
	settings        func() Settings
	client          client
	conversionSlots chan struct{}
	documents       pages.Reader // nil if no documents can be read
}

// fetchResult is the result of web_fetch.
type fetchResult struct {
	Status      int    `json:"status"`
	ContentType string `json:"content_type"`
	Body        string `json:"body"`
	URL         string `json:"url"`   // the URL that answered, after redirects
	Bytes       int    `json:"bytes"` // how many bytes of the answer's body were read, after decompression
	// Location is the target of a redirect that was not followed.
	Location string `json:"location,omitempty"`
	// For a document: the number of its pages, those of the requested pages that didn't fit, and a note for the reader.
	Pages int    `json:"pages,omitempty"`
	Next  string `json:"next,omitempty"`
	Note  string `json:"note,omitempty"`
}

func (f *fetcher) fetch(ctx context.Context, call tools.Call, args fetchArgs) (any, error) {
	settings := f.settings()
	request, own, err := args.request(ctx, settings)
	if err != nil {
		return nil, err
	}
	response, err := f.client.forCall(call, settings, own).Do(request)
	if err != nil {
		return nil, unreachableError(ctx, request.URL.Hostname(), err)
	}
	defer func() { _ = response.Body.Close() }()
	got, err := readAnswer(response)
	if err != nil {
		return nil, unreachableError(ctx, response.Request.URL.Hostname(), err)
	}
	out := fetchResult{
		Status: response.StatusCode, ContentType: visibleText(clip(response.Header.Get("Content-Type"), 200)),
		URL: visibleText(response.Request.URL.String()), Bytes: len(got.content),
	}
	if 300 <= out.Status && out.Status < 400 {
		out.Location = visibleText(clip(response.Header.Get("Location"), 2000))
	}
	mime := ""
	if kind := documentKind(got); kind != pages.None && f.documents != nil && !args.Raw {
		err = f.showDocument(ctx, kind, got, response.Body, args.Pages, &out)
	} else {
		mime = got.shownType(args.Raw)
		out.Body, err = f.show(ctx, got, args.Raw)
	}
	if err != nil {
		return nil, err
	}
	return tools.Untrusted{Value: tools.Typed{Value: out, Field: "body", MIME: mime}}, nil
}

// showDocument has a document read, and puts its text into the result out.
func (f *fetcher) showDocument(ctx context.Context, kind pages.Kind, a answer, body io.Reader, choice string, out *fetchResult) error {
	d, err := readDocument(ctx, f.documents, kind, a, body, choice)
	out.Bytes, out.Body, out.Pages, out.Next, out.Note = d.bytesRead, d.text, d.pages, d.missingPages, d.note
	return err
}

// show returns the body of an answer in the form in which the model reads it.
func (f *fetcher) show(ctx context.Context, a answer, raw bool) (string, error) {
	text := ""
	switch a.kind {
	case isText:
		text = strings.ReplaceAll(a.text(), "\x00", "\uFFFD")
		if !raw {
			text = visibleText(text)
		}
	case isPage:
		if text = strings.ReplaceAll(a.text(), "\x00", "\uFFFD"); raw {
			break
		}
		select {
		case f.conversionSlots <- struct{}{}:
			defer func() { <-f.conversionSlots }()
		case <-ctx.Done():
			return "", ctx.Err()
		}
		var err error
		if text, err = markdown(ctx, text, a.from); err != nil {
			return "", err
		}
	case isBinary:
		return a.describeBinary(), nil
	}
	return a.boundedText(text), nil
}
