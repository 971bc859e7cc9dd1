package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"parley/cmd/parley/api/exchange"
)

// canvases serves what agents have drawn for people to look at in a browser.
type canvases struct {
	// read returns a canvas, and the policy that a browser has to apply to it. It leaves out scripts if they may not run.
	read   func(ctx context.Context, session, name string, scripts bool) (doc []byte, policy string, err error)
	scopes readScopes
}

// show answers with one canvas as a document of its own origin, for a frame of the web page. The page can't see why a
// frame stays empty, so a frame gets refusals as text. Scripts run only in such a frame, because the page's policy
// keeps it from going elsewhere.
func (c canvases) show(w *exchange.Answer, r *http.Request) error {
	framed := r.Header.Get("Sec-Fetch-Dest") == "iframe"
	doc, policy, err := c.find(w, r, framed)
	kind := "text/html; charset=utf-8"
	status := http.StatusOK
	if refusal, ok := errors.AsType[*exchange.Refusal](err); ok && framed {
		kind, doc, policy, status = "text/plain; charset=utf-8", []byte(refusal.Message), "sandbox; default-src 'none'", refusal.Status
	} else if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Length", strconv.Itoa(len(doc)))
	h.Set("Content-Security-Policy", policy+"; frame-ancestors 'self'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-DNS-Prefetch-Control", "off")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "private, no-store")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(doc) // an error means that the browser has gone
	}
	return nil
}

func (c canvases) find(w *exchange.Answer, r *http.Request, scripts bool) ([]byte, string, error) {
	key, err := c.scopes.readable(w, r)
	if err != nil {
		return nil, "", err
	}
	doc, policy, err := c.read(r.Context(), key.text, r.PathValue("name"), scripts)
	if err != nil {
		return nil, "", fileRefusal(err)
	}
	return doc, policy, nil
}
