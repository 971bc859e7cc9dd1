// Package webhook receives the HTTP requests that Telegram sends to a bot, each with one update.
//
// A request is refused unless it contains the secret that Telegram was given. Its update is passed on as a
// Delivery. The request is answered with 200 once the update has arrived, and with 503 if it hasn't: Telegram then
// repeats the request, and sends no other one for the same chat before it.
package webhook

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"io"
	"net/http"
	"time"
)

const (
	// answerTimeout is how long a request waits for the Delivery's answer. Telegram waits longer.
	answerTimeout = 25 * time.Second
	// retryAfter is the Retry-After header, in seconds, in the answer to a request that is turned away.
	retryAfter = "1"
	// secretHeader is the header that contains the secret.
	secretHeader = "X-Telegram-Bot-Api-Secret-Token"
)

// A Delivery is the update from one request.
type Delivery struct {
	Update   json.RawMessage
	answered chan bool
}

// Answer says whether the update has arrived, and so whether the request is answered with 200 or with 503.
func (d Delivery) Answer(arrived bool) {
	select {
	case d.answered <- arrived:
	default: // it has been answered before
	}
}

// A Handler answers the requests that Telegram sends to one bot.
type Handler struct {
	Secret string // the secret that Telegram was given; if "", every request is turned away
	// Deliveries receives the updates. While nobody receives from it, requests are turned away.
	Deliveries chan<- Delivery
}

// ServeHTTP verifies a request's secret, passes its update on, and answers it.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.Secret == "" {
		turnAway(w)
		return
	}
	if !h.Admits(r.Header) {
		http.Error(w, "the secret is missing or wrong: only Telegram knows it", http.StatusUnauthorized)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || !json.Valid(body) {
		http.Error(w, "this isn't an update from Telegram", http.StatusBadRequest)
		return
	}
	if !h.deliver(r, body) {
		turnAway(w)
		return
	}
	w.WriteHeader(http.StatusOK)
}

// Admits reports whether a request's header contains the secret.
func (h *Handler) Admits(header http.Header) bool {
	// Hashes all have the same length, so the time that the comparison takes does not reveal the secret's length.
	got, want := sha256.Sum256([]byte(header.Get(secretHeader))), sha256.Sum256([]byte(h.Secret))
	return h.Secret != "" && subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// turnAway asks Telegram to repeat a request later.
func turnAway(w http.ResponseWriter) {
	w.Header().Set("Retry-After", retryAfter)
	http.Error(w, "it cannot be taken now", http.StatusServiceUnavailable)
}

// deliver passes an update on, and reports whether it has arrived in time.
func (h *Handler) deliver(r *http.Request, body []byte) bool {
	d := Delivery{Update: body, answered: make(chan bool, 1)}
	late := time.NewTimer(answerTimeout)
	defer late.Stop()
	select {
	case h.Deliveries <- d:
	case <-late.C:
		return false
	case <-r.Context().Done():
		return false
	}
	select {
	case arrived := <-d.answered:
		return arrived
	case <-late.C:
		return false
	case <-r.Context().Done():
		return false
	}
}
