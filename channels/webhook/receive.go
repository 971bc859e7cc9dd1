package webhook

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

const signatureHeader = "X-Hub-Signature-256"

// admit refuses a request before its body is read if it has neither a valid token nor any signature. Whether a
// signature is right can only be checked against the body; verify does that.
func (h *Handler) admit(r *http.Request) error {
	if h.hasSignature(r) || h.hasToken(r) {
		return nil
	}
	message := "the token is missing or wrong: send this webhook's token, as Authorization: Bearer TOKEN"
	switch {
	case h.config.Token == "":
		message = "the signature is missing: send " + signatureHeader + ", made with this webhook's secret"
	case h.config.Secret != "":
		message = "the token and the signature are missing or wrong: send this webhook's token, as Authorization: Bearer TOKEN, or a signature, as " + signatureHeader
	}
	return &refusal{http.StatusUnauthorized, "unauthorized", message}
}

// hasSignature reports whether the request has a signature, right or wrong, and the webhook accepts signatures.
func (h *Handler) hasSignature(r *http.Request) bool {
	return h.config.Secret != "" && h.config.Kind != Alertmanager && r.Header.Get(signatureHeader) != ""
}

// hasToken reports whether the request has the right token, and the webhook accepts
// tokens.
func (h *Handler) hasToken(r *http.Request) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if h.config.Token == "" || h.config.Kind == GitHub || !strings.EqualFold(scheme, "Bearer") {
		return false
	}
	// Hashes all have the same length, so the time that the comparison takes does not reveal the token's length.
	got, want := sha256.Sum256([]byte(strings.TrimSpace(token))), sha256.Sum256([]byte(h.config.Token))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// verify checks the signature of the body's bytes, unless the token is right.
func (h *Handler) verify(r *http.Request, body []byte) error {
	if h.hasToken(r) {
		return nil
	}
	mac := hmac.New(sha256.New, []byte(h.config.Secret))
	mac.Write(body)
	want := "sha256=" + hex.EncodeToString(mac.Sum(nil))
	if hmac.Equal([]byte(strings.ToLower(r.Header.Get(signatureHeader))), []byte(want)) {
		return nil
	}
	return &refusal{http.StatusUnauthorized, "unauthorized", "the signature is wrong: sign the body exactly as you send it, with this webhook's secret"}
}

// readBody reads the body. It refuses one of the wrong type, and one that is compressed, is too long or arrives too
// slowly.
func (h *Handler) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" && !(isForm(r) && h.config.Kind == GitHub) {
		return nil, &refusal{http.StatusUnsupportedMediaType, "unsupported_media_type", "the body must be JSON: send Content-Type: application/json"}
	}
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return nil, &refusal{http.StatusUnsupportedMediaType, "unsupported_media_type", "the body must not be compressed: send it without Content-Encoding"}
	}
	control := http.NewResponseController(w)
	// A server that can't set a deadline has its own.
	timed := control.SetReadDeadline(time.Now().Add(h.config.BodyTimeout)) == nil
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	_, tooLong := errors.AsType[*http.MaxBytesError](err)
	switch {
	case tooLong:
		return body, &refusal{http.StatusRequestEntityTooLarge, "too_large", "the body is too large: send at most " + strconv.Itoa(maxBody) + " bytes"}
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		return body, &refusal{http.StatusRequestTimeout, "timeout", "the body took too long: it must arrive within " + h.config.BodyTimeout.String()}
	case err != nil:
		return body, &refusal{http.StatusBadRequest, "bad_request", "the body was cut off"}
	}
	if timed {
		// If the deadline stayed in place, it would end the request while the request waits for the disk.
		if err := control.SetReadDeadline(time.Time{}); err != nil {
			return body, &refusal{http.StatusBadRequest, "bad_request", "the connection was cut off"}
		}
	}
	return body, nil
}

// isForm reports whether the body is a form: GitHub can post its JSON in a form.
func isForm(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "application/x-www-form-urlencoded"
}

// decode decodes the body of a post, and checks that it is of the webhook's kind.
func (h *Handler) decode(r *http.Request, body []byte) (delivery, error) {
	d := delivery{body: body}
	text := body
	switch h.config.Kind {
	case GitHub:
		d.event, d.key = r.Header.Get("X-GitHub-Event"), r.Header.Get("X-GitHub-Delivery")
		if d.event == "" {
			return d, &refusal{http.StatusBadRequest, "bad_request", "X-GitHub-Event is missing: this webhook only accepts GitHub deliveries"}
		}
		if isForm(r) {
			values, err := url.ParseQuery(string(body))
			if err != nil || values.Get("payload") == "" {
				return d, &refusal{http.StatusBadRequest, "bad_request", "the form has no payload"}
			}
			text = []byte(values.Get("payload"))
		}
	case JSON:
		d.key = r.Header.Get("Idempotency-Key")
	}
	if what := exceededBound(text); what != "" {
		return d, &refusal{http.StatusBadRequest, "bad_request", "this webhook can't accept the body: " + what}
	}
	in := json.NewDecoder(bytes.NewReader(text))
	in.UseNumber()
	if err := in.Decode(&d.data); err != nil || d.data == nil || in.More() {
		return d, &refusal{http.StatusBadRequest, "bad_request", "the body isn't a JSON object"}
	}
	removeNulls(d.data)
	if _, ok := d.data["event"]; !ok && d.event != "" {
		d.data["event"] = d.event
	}
	if h.config.Kind == Alertmanager && len(list(d.data["alerts"])) == 0 {
		return d, &refusal{http.StatusBadRequest, "bad_request", "the body has no alerts: this webhook only accepts Alertmanager's notifications"}
	}
	return d, nil
}

// removeNulls removes values that are null. A template may ask for parts of a missing value ({{ .a.b.c }} prints
// nothing), but fails at a value that is null.
func removeNulls(v any) {
	switch x := v.(type) {
	case map[string]any:
		for key, inner := range x {
			if inner == nil {
				delete(x, key)
				continue
			}
			removeNulls(inner)
		}
	case []any:
		for _, inner := range x {
			removeNulls(inner)
		}
	}
}

// route returns the destinations of a post: those of the first matching route, or the webhook's own if no route
// matches.
func (h *Handler) route(d delivery) []string {
	for _, r := range h.config.Routes {
		if h.matches(r.Match, d) {
			return r.To
		}
	}
	return h.config.To
}

func (h *Handler) matches(want map[string]string, d delivery) bool {
	for path, text := range want {
		got, ok := h.value(path, d)
		if !ok || got != text {
			return false
		}
	}
	return true
}

// value returns the text in a post that a key of Route.Match refers to: a common label of Alertmanager's, GitHub's
// event, or the value at a path of keys; false if there is none.
func (h *Handler) value(path string, d delivery) (string, bool) {
	switch h.config.Kind {
	case Alertmanager:
		common, _ := d.data["commonLabels"].(map[string]any)
		v, ok := common[path]
		return plainText(v), ok
	case GitHub:
		if path == "event" {
			return d.event, true
		}
	}
	return valueAt(d.data, path)
}

// valueAt returns the value at a path of keys separated by dots, such as "repository.name" or "commits.0.id". If there
// is a key that itself contains these dots, that key is preferred. It returns false if there is no such value.
func valueAt(v any, path string) (string, bool) {
	switch x := v.(type) {
	case map[string]any:
		if whole, ok := x[path]; ok {
			return plainText(whole), true
		}
		key, rest, deeper := strings.Cut(path, ".")
		if inner, ok := x[key]; ok && deeper {
			return valueAt(inner, rest)
		}
	case []any:
		key, rest, deeper := strings.Cut(path, ".")
		i, err := strconv.Atoi(key)
		if err != nil || i < 0 || i >= len(x) {
			return "", false
		}
		if !deeper {
			return plainText(x[i]), true
		}
		return valueAt(x[i], rest)
	}
	return "", false
}
