// Package events receives the HTTP requests that Slack sends to an app: messages, button presses and commands.
//
// A request is refused unless its signature, which covers the exact bytes of the body, is right. Its content is
// passed on as a Delivery. The request is answered with 200 once the Delivery is acknowledged, and with 503 if it
// isn't: Slack then repeats the request.
package events

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"parley/tools/plainjson"
)

const (
	// maxRequestAge is the maximum age of a request; older ones are refused so that nobody can replay a request
	// later.
	maxRequestAge = 5 * time.Minute
	// ackTimeout is how long a request waits to be acknowledged; Slack waits for 3 s.
	ackTimeout = 2700 * time.Millisecond
	// retryAfter is the Retry-After header, in seconds, in the answer to a request that is turned away.
	retryAfter = "1"
)

// The kinds of deliveries, as Socket Mode calls them.
const (
	Event       = "events_api"
	Interaction = "interactive"
	Command     = "slash_commands"
)

// A Delivery is the content of one request.
type Delivery struct {
	Kind    string
	Payload json.RawMessage // the content in the form in which a socket would deliver it
	Retry   int             // the number of the retry; 0 for the first attempt
	acked   chan any        // receives, once, what Slack should show
}

// Ack acknowledges the Delivery, and says what Slack should immediately show to the person; nil shows nothing.
func (d Delivery) Ack(show any) {
	select {
	case d.acked <- show:
	default: // it has been acknowledged before
	}
}

// A Handler answers the requests that Slack sends to one app.
type Handler struct {
	Secret string // the app's signing secret
	// Deliveries receives the contents of requests. While nobody receives from it, requests are turned away.
	Deliveries chan<- Delivery
	Now        func() time.Time // the clock; nil means time.Now
}

// ServeHTTP verifies a request's signature, passes its content on, and answers it.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "the body was cut off", http.StatusBadRequest)
		return
	}
	if why := h.signatureProblem(r, body); why != "" {
		http.Error(w, why, http.StatusUnauthorized)
		return
	}
	d, challenge, err := readRequest(r, body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if challenge != "" {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, challenge) // the client may be gone
		return
	}
	show, ok := h.deliver(r, d)
	switch {
	case !ok:
		w.Header().Set("Retry-After", retryAfter)
		http.Error(w, "it cannot be taken now", http.StatusServiceUnavailable)
	case show != nil:
		w.Header().Set("Content-Type", "application/json")
		_ = plainjson.NewEncoder(w).Encode(show) // the client may be gone
	default:
		w.WriteHeader(http.StatusOK)
	}
}

// deliver passes a Delivery on. ok is true if it was acknowledged in time; show is then what Slack should show.
func (h *Handler) deliver(r *http.Request, d Delivery) (show any, ok bool) {
	late := time.NewTimer(ackTimeout)
	defer late.Stop()
	select {
	case h.Deliveries <- d:
	case <-late.C:
		return nil, false
	case <-r.Context().Done():
		return nil, false
	}
	select {
	case show := <-d.acked:
		return show, true
	case <-late.C:
		return nil, false
	case <-r.Context().Done():
		return nil, false
	}
}

// signatureProblem says why a request may not come from Slack; "" if its signature is right and the request is not
// too old.
func (h *Handler) signatureProblem(r *http.Request, body []byte) string {
	at := r.Header.Get("X-Slack-Request-Timestamp")
	mac := hmac.New(sha256.New, []byte(h.Secret))
	_, _ = io.WriteString(mac, "v0:"+at+":") // writing to a hash never fails
	_, _ = mac.Write(body)
	if !hmac.Equal([]byte(r.Header.Get("X-Slack-Signature")), []byte("v0="+hex.EncodeToString(mac.Sum(nil)))) || h.Secret == "" {
		return "the signature is missing or wrong: it has to be made from the body, with the app's signing secret"
	}
	now := time.Now
	if h.Now != nil {
		now = h.Now
	}
	seconds, err := strconv.ParseInt(at, 10, 64)
	if age := now().Sub(time.Unix(seconds, 0)); err != nil || age > maxRequestAge || age < -maxRequestAge {
		return "the request is too old, or a clock is wrong"
	}
	return ""
}

// errUnreadable says that a request has none of the forms that Slack's requests have.
var errUnreadable = errors.New("this isn't a request from Slack: it has to be an event, an interaction or a command")

// readRequest reads a request whose signature is right. It returns a Delivery or, if challenge is not "", the text
// that Slack wants to be sent back as proof that the address belongs to the app.
func readRequest(r *http.Request, body []byte) (d Delivery, challenge string, err error) {
	d = Delivery{acked: make(chan any, 1)}
	d.Retry, _ = strconv.Atoi(r.Header.Get("X-Slack-Retry-Num")) // the first attempt has no such header
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == "application/x-www-form-urlencoded" {
		return d.readForm(body)
	}
	var head struct {
		Type      string `json:"type"`
		Challenge string `json:"challenge"`
	}
	if json.Unmarshal(body, &head) != nil || head.Type == "" {
		return d, "", errUnreadable
	}
	if head.Type == "url_verification" {
		if head.Challenge == "" {
			return d, "", errUnreadable
		}
		return d, head.Challenge, nil
	}
	d.Kind, d.Payload = Event, body
	return d, "", nil
}

// readForm reads an interaction, which is a form that contains JSON, or a command, which is a plain form.
func (d Delivery) readForm(body []byte) (Delivery, string, error) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return d, "", errUnreadable
	}
	if payload := form.Get("payload"); payload != "" {
		if !json.Valid([]byte(payload)) {
			return d, "", errUnreadable
		}
		d.Kind, d.Payload = Interaction, json.RawMessage(payload)
		return d, "", nil
	}
	if form.Get("command") == "" {
		if form.Has("ssl_check") {
			return d, "ok", nil // Slack checks from time to time whether the address answers
		}
		return d, "", errUnreadable
	}
	fields := map[string]string{}
	for name := range form {
		fields[name] = form.Get(name)
	}
	if d.Payload, err = plainjson.Marshal(fields); err != nil {
		return d, "", errUnreadable
	}
	d.Kind = Command
	return d, "", nil
}
