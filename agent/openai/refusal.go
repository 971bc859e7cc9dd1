package openai

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"parley/agent/llm"
	"parley/agent/openai/lenient"
	"parley/agent/openai/toolcall"
)

// A refusal is an error that a server answered with: as a status, or within the stream.
type refusal struct {
	status     int // of the response; in a stream the one that the error names, or 0
	written    int // the status that the error itself names
	retryAfter time.Duration
	code       string
	kind       string
	param      string
	context    int // the window's size in tokens, if a field has it: llama.cpp
	message    string
}

// Error returns a text that is fit for logs. It leaves out the server's message, which
// may repeat what people said.
func (r *refusal) Error() string {
	text := "the server refuses"
	if r.status > 0 {
		text += fmt.Sprintf(" with status %d", r.status)
	}
	if word := r.codeWord(); word != "" {
		text += ": " + word
	}
	return text
}

// description returns the server's reason in one line.
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

// codeWord returns the server's code or kind of the error if that is a single word, and ""
// otherwise.
func (r *refusal) codeWord() string {
	for _, w := range []string{r.code, r.kind} {
		if _, err := strconv.Atoi(w); err != nil && toolcall.WellFormed(strings.NewReplacer(".", "", " ", "_").Replace(w)) {
			return w
		}
	}
	return ""
}

// fault classifies a refusal. It tests for Overflow first, because servers give an
// overflow all kinds of statuses.
func (r *refusal) fault() llm.Fault {
	s := r.status
	switch {
	case r.isOverflow():
		return llm.Overflow
	case r.isModelsOwn():
		return llm.Busy
	case r.cause() != "":
		return llm.Refused
	case s == http.StatusRequestTimeout, s == http.StatusConflict, s == http.StatusTooEarly, s == http.StatusTooManyRequests, s >= 500:
		return llm.Busy
	case s == http.StatusBadRequest && r.mentions("does not support tools"):
		return llm.Refused
	case s >= 400:
		return llm.Rejected
	case r.hasCode("invalid_request_error", "invalid_prompt", "invalid_argument"):
		return llm.Rejected
	}
	return llm.Busy
}

// hasCode reports whether the code or the kind of the error is one of these words.
func (r *refusal) hasCode(words ...string) bool {
	return slices.Contains(words, strings.ToLower(r.code)) || slices.Contains(words, strings.ToLower(r.kind))
}

// refusalOf reads a response whose status is an error.
func refusalOf(status int, header http.Header, body []byte) *refusal {
	r := &refusal{status: status}
	r.read(body)
	if wait, ok := waitOf(header, time.Now()); ok {
		r.retryAfter = wait
	}
	return r
}

// refusalInStream reads an error within a stream. Many such errors carry a status, as their
// code or beside it.
func refusalInStream(raw []byte) *refusal {
	r := &refusal{}
	r.read(raw)
	r.status = r.written
	return r
}

// read reads an error in any of the shapes in which servers write it: an object, a text
// or a list, in a field or alone. It ignores an HTML page, which comes with a status that tells more,
// unless that is a success.
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
	for _, name := range []string{"error", "detail", "errors"} {
		if inner := fields[name]; !lenient.IsEmpty(inner) {
			r.read(inner)
			break
		}
	}
	word := func(into *string, names ...string) {
		for _, name := range names {
			var f lenient.String
			if *into == "" && len(fields[name]) > 0 && f.UnmarshalJSON(fields[name]) == nil {
				*into = oneLine(string(f))
			}
		}
	}
	word(&r.message, "message", "msg")
	word(&r.code, "code")
	word(&r.kind, "type", "status")
	word(&r.param, "param")
	if wait := statedWait(r.message); r.retryAfter == 0 {
		r.retryAfter = wait
	}
	if window := fields["n_ctx"]; len(window) > 0 && json.Unmarshal(window, &r.context) != nil {
		r.context = 0
	}
	for _, name := range []string{"status_code", "statusCode", "http_status", "raw_status_code", "status", "code"} {
		number := ""
		word(&number, name)
		if n, err := strconv.Atoi(number); err == nil && n >= 400 && n < 600 && r.written == 0 {
			r.written = n
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

// statedWait returns how long a message asks to wait, as in “try again in 1.5s”; 0 if it
// does not. Within a stream there are no headers that say so.
func statedWait(message string) time.Duration {
	_, after, found := strings.Cut(strings.ToLower(message), "try again in ")
	word, _, _ := strings.Cut(after, " ")
	wait, err := time.ParseDuration(strings.TrimRight(word, ".,;"))
	if !found || err != nil || wait < 0 {
		return 0
	}
	return min(wait, 24*time.Hour)
}

// oneLine makes a message fit for a terminal: one line of at most 300 bytes, without
// control characters.
func oneLine(text string) string {
	const most = 300
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return r <= ' ' || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == utf8.RuneError
	}), " ")
	if len(text) <= most {
		return text
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

// waitOf returns how long a response's headers ask the client to wait; false if they do
// not say.
func waitOf(h http.Header, now time.Time) (time.Duration, bool) {
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

// seconds returns a duration of s seconds, and of a day at most.
func seconds(s float64) time.Duration {
	return time.Duration(min(s, 24*60*60) * float64(time.Second))
}

// concealKey replaces the words of a server's message that hold the key or a part of it.
func concealKey(message, key string) string {
	if key == "" {
		return message
	}
	const shown = 6 // a word with that many of the key's first characters is taken for the key
	words := strings.Split(message, " ")
	for i, w := range words {
		if strings.Contains(w, key) || strings.Contains(w, "***") || len(key) > 2*shown && strings.Contains(w, key[:shown]) {
			words[i] = "***"
		}
	}
	return strings.Join(words, " ")
}

// cause returns what the operator has to mend, "" if that is nothing known. Few servers
// have a code for it; for the others only the status and the message tell.
func (r *refusal) cause() llm.Cause {
	switch {
	case r.isOverflow():
		return ""
	case r.isUnpaid():
		return llm.CauseQuota
	case r.rejectsModel():
		return llm.CauseModel
	case r.rejectsKey():
		return llm.CauseKey
	}
	switch r.status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return llm.CauseKey
	case http.StatusNotFound:
		if r.mentions("model") {
			return llm.CauseModel
		}
		return llm.CauseAddress
	case http.StatusMethodNotAllowed, http.StatusGone:
		return llm.CauseAddress
	}
	if r.status > 0 && r.status < http.StatusBadRequest {
		return llm.CauseAddress
	}
	return ""
}

// isUnpaid reports whether the account has no money left. A limit of requests per time
// does not count, even if a server calls it a quota.
func (r *refusal) isUnpaid() bool {
	return r.status == http.StatusPaymentRequired ||
		r.hasCode("insufficient_quota", "billing_hard_limit_reached", "exceeded_current_quota_error", "insufficient_balance", "1113", "arrearage") ||
		r.mentions("insufficient balance", "insufficient credit", "credit balance is too low", "account is not active", "in arrears", "out of credits")
}

// rejectsModel reports whether the server does not know the model.
func (r *refusal) rejectsModel() bool {
	return r.hasCode("model_not_found", "model_not_exist", "invalid_model", "unknown_model") ||
		r.mentions("model not found", "model not exist", "invalid model", "no such model", "unknown model", "is not a valid model", "model does not exist")
}

// rejectsKey reports whether the server does not accept the API key.
func (r *refusal) rejectsKey() bool {
	return r.hasCode("invalid_api_key", "authentication_error", "permission_error", "unauthenticated", "permission_denied", "invalid_authentication_error") ||
		r.mentions("api key not valid", "invalid api key", "incorrect api key", "api key is missing", "no auth credentials", "missing authentication")
}

// isModelsOwn reports whether the model wrote something that its own server could not
// read. If asked again, the model may write something else.
func (r *refusal) isModelsOwn() bool {
	return r.hasCode("tool_use_failed", "output_parse_failed", "json_validate_failed")
}

// mentions reports whether the server's message contains one of these texts, in lower or upper
// case.
func (r *refusal) mentions(words ...string) bool {
	text := strings.ToLower(r.message)
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}
