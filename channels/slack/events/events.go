// Package events takes the requests that Slack makes of an app: what people say, press and command.
//
// A request counts for nothing before its signature, which is of the body's very bytes,
// is found right. What it brings is handed over as a Delivery, and is answered with 200
// once that is acknowledged, and with 503 otherwise: Slack then makes it again.
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
)

const (
	// window is how old a request may be, so that nobody repeats one later.
	window = 5 * time.Minute
	// patience is how long a request waits to be acknowledged: Slack waits for 3 s.
	patience = 2700 * time.Millisecond
	// retryAfter is told to whoever is turned away, in seconds.
	retryAfter = "1"
)

// The kinds of deliveries, as Socket Mode calls them.
const (
	Event       = "events_api"
	Interaction = "interactive"
	Command     = "slash_commands"
)

// A Delivery is what one request brings.
type Delivery struct {
	Kind    string
	Payload json.RawMessage // as a socket would bring it
	Retry   int             // which repetition it is; 0 is none
	acked   chan any        // gets what is to be shown, once
}

// Ack says that it has arrived, and what Slack is to show of it at once; nil is nothing.
func (d Delivery) Ack(show any) {
	select {
	case d.acked <- show:
	default: // it was acknowledged before
	}
}

// A Handler answers the requests that Slack makes of one app.
type Handler struct {
	Secret string // of the signatures
	// Deliveries is where those are handed over. While nobody takes them, requests are
	// turned away.
	Deliveries chan<- Delivery
	Now        func() time.Time // nil is time.Now
}

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "the body was cut off", http.StatusBadRequest)
		return
	}
	if why := h.doubt(r, body); why != "" {
		http.Error(w, why, http.StatusUnauthorized)
		return
	}
	d, challenge, err := read(r, body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if challenge != "" {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, challenge) // the caller may be gone
		return
	}
	show, ok := h.deliver(r, d)
	switch {
	case !ok:
		w.Header().Set("Retry-After", retryAfter)
		http.Error(w, "it cannot be taken now", http.StatusServiceUnavailable)
	case show != nil:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(show) // the caller may be gone
	default:
		w.WriteHeader(http.StatusOK)
	}
}

// deliver hands a delivery over, and reports whether it was acknowledged in time, and with
// what to show.
func (h *Handler) deliver(r *http.Request, d Delivery) (show any, ok bool) {
	late := time.NewTimer(patience)
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

// doubt says why a request may not be Slack's; "" if it is.
func (h *Handler) doubt(r *http.Request, body []byte) string {
	at := r.Header.Get("X-Slack-Request-Timestamp")
	mac := hmac.New(sha256.New, []byte(h.Secret))
	_, _ = io.WriteString(mac, "v0:"+at+":") // a hash takes everything
	_, _ = mac.Write(body)
	if !hmac.Equal([]byte(r.Header.Get("X-Slack-Signature")), []byte("v0="+hex.EncodeToString(mac.Sum(nil)))) || h.Secret == "" {
		return "the signature is missing or wrong: it is made of the body with the app's signing secret"
	}
	now := time.Now
	if h.Now != nil {
		now = h.Now
	}
	seconds, err := strconv.ParseInt(at, 10, 64)
	if age := now().Sub(time.Unix(seconds, 0)); err != nil || age > window || age < -window {
		return "the request is too old, or a clock is wrong"
	}
	return ""
}

var errUnreadable = errors.New("this is no request of Slack's: want an event, an interaction or a command")

// read reads a request whose signature is right.
func read(r *http.Request, body []byte) (d Delivery, challenge string, err error) {
	d = Delivery{acked: make(chan any, 1)}
	d.Retry, _ = strconv.Atoi(r.Header.Get("X-Slack-Retry-Num")) // left out of a first attempt
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == "application/x-www-form-urlencoded" {
		return d.form(body)
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

// form reads an interaction, which is a form with JSON in it, or a command, which is a
// form.
func (d Delivery) form(body []byte) (Delivery, string, error) {
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
			return d, "ok", nil // Slack looks from time to time whether somebody answers
		}
		return d, "", errUnreadable
	}
	fields := map[string]string{}
	for name := range form {
		fields[name] = form.Get(name)
	}
	if d.Payload, err = json.Marshal(fields); err != nil {
		return d, "", errUnreadable
	}
	d.Kind = Command
	return d, "", nil
}
