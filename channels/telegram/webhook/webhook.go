// Package webhook receives the requests that Telegram makes to a bot, each with one update.
//
// A request is ignored unless it contains the secret that Telegram was given. Its update is
// handed over as a Delivery. The request is answered with 200 once the update has arrived,
// and with 503 if it has not: Telegram then repeats the request, and makes no other of the
// same chat before it.
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
	// answerTimeout is how long a request waits for the Delivery's answer. Telegram waits
	// longer.
	answerTimeout = 25 * time.Second
	// retryAfter is the Retry-After header of a request that is turned away, in seconds.
	retryAfter = "1"
	// secretHeader is the header with the secret.
	secretHeader = "X-Telegram-Bot-Api-Secret-Token"
)

// A Delivery is the update of one request.
type Delivery struct {
	Update   json.RawMessage
	answered chan bool
}

// Answer says whether the update has arrived, and so whether the request is answered with 200 or
// with 503.
func (d Delivery) Answer(arrived bool) {
	select {
	case d.answered <- arrived:
	default: // it was answered before
	}
}

// A Handler answers the requests that Telegram makes to one bot.
type Handler struct {
	Secret string // the secret that Telegram was given; with "" every request is turned away
	// Deliveries receives the updates. While nobody receives from it, requests are turned
	// away.
	Deliveries chan<- Delivery
}

// ServeHTTP checks one request's secret, hands its update over, and answers it.
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
		http.Error(w, "this is no update of Telegram's", http.StatusBadRequest)
		return
	}
	if !h.deliver(r, body) {
		turnAway(w)
		return
	}
	w.WriteHeader(http.StatusOK)
}

// Admits reports whether a request's header has the secret.
func (h *Handler) Admits(header http.Header) bool {
	// Hashes all have the same length, so the time of the comparison does not tell how
	// long the secret is.
	got, want := sha256.Sum256([]byte(header.Get(secretHeader))), sha256.Sum256([]byte(h.Secret))
	return h.Secret != "" && subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// turnAway asks Telegram to repeat a request later.
func turnAway(w http.ResponseWriter) {
	w.Header().Set("Retry-After", retryAfter)
	http.Error(w, "it cannot be taken now", http.StatusServiceUnavailable)
}

// deliver hands an update over, and reports whether it has arrived in time.
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
