package openai

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"parley/agent/openai/wire"
	"parley/tools"
)

// A refusal is an error that a server answered with, as an HTTP status or within the stream.
type refusal struct {
	status           int // of the response; in a stream, the one that the error states, or 0
	statedStatus     int // the status in the error's own fields
	retryAfter       time.Duration
	code             string
	kind             string
	param            string
	statedWindowSize int // the window's size in tokens, if a field states it: llama.cpp
	message          string
}

// Error returns a text that is suitable for logs. It leaves out the server's message, which may repeat what
// people said.
func (r *refusal) Error() string {
	text := "the server refused the request"
	if r.status > 0 {
		text += fmt.Sprintf(" with status %d", r.status)
	}
	if word := r.codeWord(); word != "" {
		text += ": " + word
	}
	return text
}

// description returns the server's reason on one line, or else its code or what the status means.
func (r *refusal) description() string {
	switch {
	case r.message != "":
		return r.message
	case r.code != "":
		return r.code
	case r.kind != "":
		return r.kind
	case http.StatusText(r.status) != "":
		return http.StatusText(r.status)
	}
	return "no reason given"
}

// codeWord returns the error's code or kind, as sent by the server, if it is a single word, and "" otherwise.
func (r *refusal) codeWord() string {
	for _, w := range []string{r.code, r.kind} {
		if _, err := strconv.Atoi(w); err != nil && wire.WellFormed(strings.NewReplacer(".", "", " ", "_").Replace(w)) {
			return w
		}
	}
	return ""
}

// hasCode reports whether the code or the kind of the error is one of these words.
func (r *refusal) hasCode(words ...string) bool {
	return slices.Contains(words, strings.ToLower(r.code)) || slices.Contains(words, strings.ToLower(r.kind))
}

// refusalOf reads a response whose status is an error, or that is a web page.
func refusalOf(status int, header http.Header, body []byte) *refusal {
	r := &refusal{status: status}
	r.read(body)
	if wait, ok := waitFromHeaders(header, time.Now()); ok {
		r.retryAfter = wait
	}
	return r
}

// refusalInStream reads an error within a stream. Many such errors contain a status, as their code or in
// another field.
func refusalInStream(raw []byte) *refusal {
	r := &refusal{}
	r.read(raw)
	r.status = r.statedStatus
	return r
}

// read reads an error in any of the forms in which servers write it: an object, a text or a list, in a field or
// by itself. Of a list, the first item counts. It ignores an HTML page, because the status says more, unless the status
// is a success.
func (r *refusal) read(body []byte) {
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	var text string
	var fields map[string]json.RawMessage
	switch {
	case json.Unmarshal(body, &text) == nil:
		r.message = oneLine(text)
	case json.Unmarshal(body, &fields) == nil:
		r.readFields(fields)
	case len(body) > 0 && body[0] != '<':
		r.message = oneLine(string(body))
	case len(body) > 0 && r.status > 0 && r.status < http.StatusMultipleChoices:
		r.message = "a web page"
	}
}

// readFields reads an error that is a JSON object.
func (r *refusal) readFields(fields map[string]json.RawMessage) {
	if status := readMinimax(fields["base_resp"]); status.isFailure() {
		r.message, r.code, r.statedStatus = oneLine(string(status.Message)), string(status.Code), status.httpStatus()
	}
	for _, name := range []string{"error", "detail", "errors"} {
		if inner := fields[name]; !wire.IsEmpty(inner) {
			r.read(inner)
			break
		}
	}
	word := func(into *string, names ...string) {
		for _, name := range names {
			var f wire.String
			if *into == "" && len(fields[name]) > 0 && f.UnmarshalJSON(fields[name]) == nil {
				*into = oneLine(string(f))
			}
		}
	}
	word(&r.message, "message", "msg")
	r.readUpstreamMessage(fields["metadata"])
	word(&r.code, "code")
	word(&r.kind, "type", "status")
	word(&r.param, "param")
	var at []any // the error's place, in Pydantic's form
	if r.param == "" && json.Unmarshal(fields["loc"], &at) == nil {
		r.param = strings.Trim(strings.ReplaceAll(fmt.Sprint(at), " ", "."), "[]")
	}
	if wait := waitFromMessage(r.message); r.retryAfter == 0 {
		r.retryAfter = wait
	}
	if window := fields["n_ctx"]; len(window) > 0 && json.Unmarshal(window, &r.statedWindowSize) != nil {
		r.statedWindowSize = 0
	}
	for _, name := range []string{"status_code", "statusCode", "http_status", "raw_status_code", "status", "code"} {
		number := ""
		word(&number, name)
		if n, err := strconv.Atoi(number); err == nil && n >= 400 && n < 600 && r.statedStatus == 0 {
			r.statedStatus = n
		}
	}
	var details []struct {
		RetryDelay string `json:"retryDelay"`
	}
	if json.Unmarshal(fields["details"], &details) == nil {
		for _, d := range details {
			if wait, err := time.ParseDuration(d.RetryDelay); err == nil && wait > 0 {
				r.retryAfter = wait
			}
		}
	}
}

// readUpstreamMessage reads the message of the provider behind OpenRouter. OpenRouter's own message only says that
// there was an error.
func (r *refusal) readUpstreamMessage(metadata json.RawMessage) {
	var of struct {
		Raw wire.String `json:"raw"`
	}
	if !strings.EqualFold(r.message, "Provider returned error") || len(metadata) == 0 || json.Unmarshal(metadata, &of) != nil {
		return
	}
	said := &refusal{}
	if said.read([]byte(of.Raw)); said.message != "" {
		r.message, r.code, r.kind, r.param = said.message, said.code, said.kind, said.param
	}
}

// waitFromMessage returns how long a message asks the client to wait, as in “try again in 1.5s”, up to a day; 0 if it
// doesn't. Within a stream there are no headers that could say so.
func waitFromMessage(message string) time.Duration {
	_, after, found := strings.Cut(strings.ToLower(message), "try again in ")
	word, _, _ := strings.Cut(after, " ")
	wait, err := time.ParseDuration(strings.TrimRight(word, ".,;"))
	if !found || err != nil || wait < 0 {
		return 0
	}
	return min(wait, 24*time.Hour)
}

// oneLine prepares a message for a terminal: one line of at most 300 bytes, without control characters.
func oneLine(text string) string {
	const most = 300
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return r <= ' ' || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == utf8.RuneError
	}), " ")
	return tools.Clip(text, most)
}

// waitFromHeaders returns how long a response's headers ask the client to wait, but at most a day if they state seconds; false
// if they don't say.
func waitFromHeaders(h http.Header, now time.Time) (time.Duration, bool) {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms >= 0 {
		return seconds(ms / 1000), true
	}
	after := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(after, 64); err == nil && s >= 0 {
		return seconds(s), true
	}
	if at, err := http.ParseTime(after); err == nil {
		return max(0, at.Sub(now)), true
	}
	return 0, false
}

// seconds returns a duration of s seconds, but at most a day.
func seconds(s float64) time.Duration {
	return time.Duration(min(s, 24*60*60) * float64(time.Second))
}

// mentions reports whether the server's message contains one of these texts, regardless of case.
func (r *refusal) mentions(words ...string) bool {
	text := strings.ToLower(r.message)
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// saysUnknown reports whether a refusal calls a parameter unknown or unsupported.
func (r *refusal) saysUnknown() bool {
	return r.mentions("unsupported", "not supported", "unrecognized", "unknown", "not permitted", "unexpected", "additional propert", "not allowed")
}

// blames reports whether a refusal is about one of these parameters. Few servers name the parameter in a field;
// the others name it only in their message.
func (r *refusal) blames(parameters ...string) bool {
	text := strings.ToLower(r.message)
	return slices.ContainsFunc(parameters, func(p string) bool {
		return r.param == p || strings.Contains(text, p)
	})
}

// concerns reports whether a refusal's parameter or message contains a word.
func (r *refusal) concerns(word string) bool {
	return strings.Contains(strings.ToLower(r.param+" "+r.message), word)
}

// statedMaximum returns the number that a refusal states as the maximum; 0 if it states none.
func (r *refusal) statedMaximum() int {
	form := `(?:max(?:imum|\.)?(?: allowed)?(?: length| number| size)?(?: of)?(?: characters| tools| functions)?(?: is)?|at most|up to|limit of|not exceed|exceeds?(?: the)?|less than or equal to) ?:? ?(\d+)`
	found := regexp.MustCompile(form).FindStringSubmatch(strings.ToLower(r.message))
	if found == nil {
		return 0
	}
	n, err := strconv.Atoi(found[1])
	if err != nil {
		return 0
	}
	return n
}
