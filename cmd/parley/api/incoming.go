package api

import (
	"bytes"
	"io"
	"net/http"

	"parley/cmd/parley/api/exchange"
)

// incoming serves the requests that other services and chat platforms send. It passes them to other
// handlers, which check their callers themselves; see Config.
type incoming struct {
	webhooks  func() map[string]http.Handler
	receivers func() map[string]http.Handler
}

// webhook passes a request to the webhook that the path names.
func (i incoming) webhook(w *exchange.Answer, r *http.Request) error {
	w.ID = r.PathValue("name")
	if i.webhooks != nil {
		if h := i.webhooks()[w.ID]; h != nil {
			h.ServeHTTP(w, r)
			return nil
		}
	}
	return exchange.NotFound("no webhook has that name: see [webhooks] in the configuration")
}

// A headerChecker is a channel that can refuse a platform's request by its header alone.
type headerChecker interface {
	// Admits returns false if the channel refuses the request, whatever its body is.
	Admits(header http.Header) bool
}

// channel passes a platform's request to the channel that the path names.
func (i incoming) channel(w *exchange.Answer, r *http.Request) error {
	w.ID = r.PathValue("name")
	if i.receivers != nil {
		if h := i.receivers()[w.ID]; h != nil {
			if c, ok := h.(headerChecker); ok && !c.Admits(r.Header) {
				r.Body = http.NoBody // the channel says why it refuses, and doesn't need the body
				h.ServeHTTP(w, r)
				return nil
			}
			body, err := w.ReadBody(r, exchange.MaxJSON)
			if err != nil {
				return err
			}
			w.Routine = true
			r.Body = io.NopCloser(bytes.NewReader(body))
			h.ServeHTTP(w, r)
			return nil
		}
	}
	return exchange.NotFound(`no channel by that name receives over HTTP here: set receive = "http" for it in the configuration`)
}
