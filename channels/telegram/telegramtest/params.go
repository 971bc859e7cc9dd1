package telegramtest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// fileName is the suffix of the name of a parameter that holds the file name for another parameter.
const fileName = " filename"

// params are the parameters of a call, by name, as text; values that are not text are
// JSON.
type params map[string]string

// intParam returns a parameter that is a number; 0 if it is missing or not a number.
func (p params) intParam(name string) int64 {
	n, _ := strconv.ParseInt(p[name], 10, 64) // 0 means the same as none
	return n
}

// parseParams reads parameters in each of the forms that Telegram accepts.
func parseParams(r *http.Request, body []byte) params {
	p := make(params)
	kind := r.Header.Get("Content-Type")
	switch {
	case strings.HasPrefix(kind, "multipart/form-data"):
		_, boundary, _ := strings.Cut(kind, "boundary=")
		p.addMultipart(body, []byte("--"+strings.Trim(boundary, `"`)))
	case strings.HasPrefix(kind, "application/json"):
		p.addJSON(body)
	case len(body) > 0:
		if form, err := url.ParseQuery(string(body)); err == nil {
			p.addForm(form)
		}
	}
	if r.URL.RawQuery != "" {
		p.addForm(r.URL.Query())
	}
	return p
}

// addForm adds the fields of a form.
func (p params) addForm(values url.Values) {
	for name := range values {
		p[name] = values.Get(name)
	}
}

// addJSON adds the fields of a JSON object.
func (p params) addJSON(body []byte) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil {
		return // like a call without parameters
	}
	for name, raw := range fields {
		var text string
		if json.Unmarshal(raw, &text) != nil {
			text = string(raw)
		}
		p[name] = text
	}
}

// addMultipart adds the fields of a multipart form, with as little work as possible, because the server shares its
// processors with the bot that is measured.
func (p params) addMultipart(body, boundary []byte) {
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
