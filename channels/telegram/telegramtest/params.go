package telegramtest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// fileName ends the name of a parameter that is the name of another's file.
const fileName = " filename"

// params are a call's, as text; what is no text is JSON.
type params map[string]string

// number is a parameter that is a number, or 0.
func (p params) number(name string) int64 {
	n, _ := strconv.ParseInt(p[name], 10, 64) // 0 is as good as left out
	return n
}

// parse reads parameters in any of the ways in which Telegram takes them.
func parse(r *http.Request, body []byte) params {
	p := make(params)
	kind := r.Header.Get("Content-Type")
	switch {
	case strings.HasPrefix(kind, "multipart/form-data"):
		_, boundary, _ := strings.Cut(kind, "boundary=")
		p.multipart(body, []byte("--"+strings.Trim(boundary, `"`)))
	case strings.HasPrefix(kind, "application/json"):
		p.json(body)
	case len(body) > 0:
		if form, err := url.ParseQuery(string(body)); err == nil {
			p.form(form)
		}
	}
	if r.URL.RawQuery != "" {
		p.form(r.URL.Query())
	}
	return p
}

func (p params) form(values url.Values) {
	for name := range values {
		p[name] = values.Get(name)
	}
}

func (p params) json(body []byte) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil {
		return // as a call without parameters
	}
	for name, raw := range fields {
		var text string
		if json.Unmarshal(raw, &text) != nil {
			text = string(raw)
		}
		p[name] = text
	}
}

// multipart reads a form's fields, with no more work than that takes: the
// server shares its processors with the bot that is measured.
func (p params) multipart(body, boundary []byte) {
	for {
		i := bytes.Index(body, boundary)
		if i < 0 {
			return
		}
		body = body[i+len(boundary):]
		head, rest, found := bytes.Cut(body, []byte("\r\n\r\n"))
		if !found {
			return
		}
		end := bytes.Index(rest, boundary)
		if end < 0 {
			return
		}
		if _, name, ok := bytes.Cut(head, []byte(`name="`)); ok {
			name, _, _ = bytes.Cut(name, []byte(`"`))
			p[string(name)] = string(bytes.TrimSuffix(rest[:end], []byte("\r\n")))
			if _, file, ok := bytes.Cut(head, []byte(`filename="`)); ok {
				file, _, _ = bytes.Cut(file, []byte(`"`))
				p[string(name)+fileName] = string(file)
			}
		}
		body = rest[end:]
	}
}
