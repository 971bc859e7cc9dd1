package web

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"parley/tools"
)

type fetchArgs struct {
	URL     string            `json:"url" jsonschema:"begins with https:// or http://"`
	Method  string            `json:"method,omitempty" jsonschema:"GET (default), HEAD, POST, PUT, PATCH, DELETE or OPTIONS"`
	Headers map[string]string `json:"headers,omitempty" jsonschema:"headers to send"`
	Body    string            `json:"body,omitempty" jsonschema:"what to send with POST, PUT, PATCH or DELETE"`
	Raw     bool              `json:"raw,omitempty" jsonschema:"true gives a page's source in place of Markdown"`
	Pages   string            `json:"pages,omitempty" jsonschema:"of a document (PDF, DOCX, XLSX, PPTX): which pages to read, as 3, 2-5 or 7-; left out: from the first on, as many as fit"`
	Timeout int               `json:"timeout,omitempty" jsonschema:"seconds, 30 by default and 120 at most"`
}

func (a fetchArgs) method() string {
	if a.Method == "" {
		return http.MethodGet
	}
	return strings.ToUpper(strings.TrimSpace(a.Method))
}

// reads reports whether the call only reads, and changes nothing on the server.
func (a fetchArgs) reads() bool {
	return a.method() == http.MethodGet || a.method() == http.MethodHead
}

func effectOf(args fetchArgs) tools.Effect {
	if args.reads() {
		return tools.Pure
	}
	return tools.Once
}

// touch says what a call touches. A method other than GET and HEAD, or a header that carries information out,
// counts as acting on the outside.
func (a fetchArgs) touch() tools.Touch {
	return tools.Touch{Subject: tools.URL(a.URL), Reads: tools.NoFiles{}, Writes: tools.NoFiles{}, Outward: a.outward()}
}

// shown returns the request as the approver is shown it: in the form in which it is sent.
func (a fetchArgs) shown() tools.Showing {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", tools.WholeLine(cmp.Or(strings.ToUpper(a.Method), http.MethodGet)), tools.WholeLine(a.URL))
	for _, name := range slices.Sorted(maps.Keys(a.Headers)) {
		fmt.Fprintf(&b, "%s: %s\n", tools.WholeLine(name), tools.WholeLine(a.Headers[name]))
	}
	if a.Body != "" {
		b.WriteString("\n" + a.Body)
	}
	return tools.Showing{Text: strings.TrimSuffix(b.String(), "\n"), ShownArgs: []string{"url", "method", "headers", "body"}}
}

func (a fetchArgs) outward() tools.Outward {
	if method := strings.ToUpper(a.Method); method != "" && method != http.MethodGet && method != http.MethodHead {
		return tools.OutwardEffect(fmt.Sprintf("send a %s to %s", method, tools.OneLine(a.URL)))
	}
	for _, name := range slices.Sorted(maps.Keys(a.Headers)) {
		if !isHarmless(name, a.Headers[name]) {
			return tools.OutwardEffect(fmt.Sprintf("send the header %s to %s", tools.OneLine(name), tools.OneLine(a.URL)))
		}
	}
	return tools.NothingOutward{}
}

// isHarmless reports whether a request header carries no information out: it only says in which form an answer is
// wanted. A value is harmless as a whole or not at all: any value that leaves the model a choice, such as a
// language or a range of bytes, carries information out.
func isHarmless(name, value string) bool {
	forms := []string{"*/*", "text/html", "text/plain", "text/markdown", "application/json", "application/xml"}
	return http.CanonicalHeaderKey(name) == "Accept" && slices.Contains(forms, value)
}

// request makes the HTTP request for a call; own are the headers that the model gave. The error says which argument
// is wrong, or that the operator doesn't permit the host.
func (a fetchArgs) request(ctx context.Context, settings Settings) (r *http.Request, own http.Header, err error) {
	target, err := parseTarget(a.URL)
	if err != nil {
		return nil, nil, err
	}
	if err := settings.checkPermitted(target.Hostname()); err != nil {
		return nil, nil, err
	}
	method := a.method()
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		if a.Body != "" {
			return nil, nil, tools.Errorf(tools.InvalidArgs, "%s sends no body: leave body out, or use POST", method)
		}
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		return nil, nil, tools.Errorf(tools.InvalidArgs, "the method %q is not one of GET, HEAD, POST, PUT, PATCH, DELETE and OPTIONS", clip(a.Method, 32))
	}
	if own, err = a.headers(); err != nil {
		return nil, nil, err
	}
	var body io.Reader
	if a.Body != "" {
		body = strings.NewReader(a.Body)
	}
	if r, err = http.NewRequestWithContext(ctx, method, target.String(), body); err != nil {
		return nil, nil, tools.Errorf(tools.InvalidArgs, "this cannot be requested: check the URL")
	}
	r.Header.Set("User-Agent", "Parley")
	r.Header.Set("Accept", "text/html,application/xhtml+xml,text/plain;q=0.9,*/*;q=0.8")
	if a.Body != "" {
		r.Header.Set("Content-Type", contentType(a.Body))
	}
	maps.Copy(r.Header, own)
	return r, own, nil
}

// headers returns the headers in the arguments. It refuses those that the connection sets itself.
func (a fetchArgs) headers() (http.Header, error) {
	own := http.Header{}
	for name, value := range a.Headers {
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, tools.Errorf(tools.InvalidArgs, "the header %q holds what no header may: letters, digits and hyphens in its name, one line in its value", clip(name, 64))
		}
		name = textproto.CanonicalMIMEHeaderKey(name)
		if slices.Contains([]string{
			"Host", "Content-Length", "Transfer-Encoding", "Accept-Encoding", "Connection", "Keep-Alive", "Te", "Trailer", "Upgrade", "Expect",
		}, name) || strings.HasPrefix(name, "Proxy-") {
			return nil, tools.Errorf(tools.InvalidArgs, "the header %s is set by itself: leave it out", name)
		}
		own.Set(name, value)
	}
	return own, nil
}

// contentType returns the content type for the body of a request if the model gives none.
func contentType(body string) string {
	if json.Valid([]byte(body)) {
		return "application/json"
	}
	return "text/plain; charset=utf-8"
}
