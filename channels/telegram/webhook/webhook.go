// Package webhook takes the requests that Telegram makes of a bot, each of which brings one update.
//
// A request counts for nothing without the secret that Telegram was given. Its update is
// handed over as a Delivery, and is answered with 200 once that says that it has arrived,
// and with 503 otherwise: Telegram then makes it again, and nothing of the same chat
// before it.
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
	// patience is how long a request waits to be answered. Telegram waits longer.
	patience = 25 * time.Second
	// retryAfter is told to whoever is turned away, in seconds.
	retryAfter = "1"
	// secretHeader has the secret.
	secretHeader = "X-Telegram-Bot-Api-Secret-Token"
)

// A Delivery is the update of one request.
type Delivery struct {
	Update   json.RawMessage
	answered chan bool
}

// Answer says whether the update has arrived.
func (d Delivery) Answer(arrived bool) {
	select {
	case d.answered <- arrived:
	default: // it was answered before
	}
}

// A Handler answers the requests that Telegram makes of one bot.
type Handler struct {
	Secret string // that Telegram was given; "" takes no request
	// Deliveries is where those are handed over. While nobody takes them, requests are
	// turned away.
	Deliveries chan<- Delivery
}

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.Secret == "" {
		turnAway(w)
		return
	}
	// Hashes all have the same length, so the time of the comparison does not tell how
	// long the secret is.
	got, want := sha256.Sum256([]byte(r.Header.Get(secretHeader))), sha256.Sum256([]byte(h.Secret))
	if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
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

func turnAway(w http.ResponseWriter) {
	w.Header().Set("Retry-After", retryAfter)
	http.Error(w, "it cannot be taken now", http.StatusServiceUnavailable)
}

// deliver hands an update over, and reports whether it has arrived.
func (h *Handler) deliver(r *http.Request, body []byte) bool {
	d := Delivery{Update: body, answered: make(chan bool, 1)}
	late := time.NewTimer(patience)
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
