package api_test

import (
	"context"
	"io/fs"
	"net/http"
	"strings"
	"testing"

	"parley/cmd/parley/api/exchange"
)

// Callers who may read a session get its canvases as documents without any rights. Only a canvas in a frame may run
// scripts, and only there a refusal is plain text.
func TestCanvases(t *testing.T) {
	x := newRig(t, func(x *rig) {
		x.cfg.Canvas = func(_ context.Context, session, name string, scripts bool) ([]byte, string, error) {
			switch {
			case name == "large.html":
				return nil, "", exchange.Unprocessable("too_large", "it is too large")
			case session != "main:web:chat" || name != "a.html":
				return nil, "", fs.ErrNotExist
			case scripts:
				return []byte("<p>runs"), "sandbox allow-scripts", nil
			}
			return []byte("<p>still"), "sandbox", nil
		}
	})
	at := sessionPath("main:web:chat", "/canvases/")
	for _, c := range []struct {
		name, to string
		status   int
		kind     string
		body     string
		policy   string
	}{
		{"a.html", "iframe", 200, "text/html; charset=utf-8", "<p>runs", "sandbox allow-scripts; frame-ancestors 'self'"},
		{"a.html", "document", 200, "text/html; charset=utf-8", "<p>still", "sandbox; frame-ancestors 'self'"},
		{"a.html", "", 200, "text/html; charset=utf-8", "<p>still", "sandbox; frame-ancestors 'self'"},
		{"large.html", "iframe", 422, "text/plain; charset=utf-8", "it is too large", "sandbox; default-src 'none'; frame-ancestors 'self'"},
		{"large.html", "empty", 422, "application/json", `"too_large"`, ""},
		{"none.html", "iframe", 404, "text/plain; charset=utf-8", "no such file", "sandbox; default-src 'none'; frame-ancestors 'self'"},
	} {
		r := x.do(http.MethodGet, at+c.name, readToken, "", header("Sec-Fetch-Dest", c.to))
		h := r.Header
		if r.StatusCode != c.status || !strings.HasPrefix(h.Get("Content-Type"), c.kind) || !strings.Contains(string(r.body), c.body) || h.Get("Content-Security-Policy") != c.policy {
			t.Errorf("%s as %q: %d %s %v", c.name, c.to, r.StatusCode, r.body, h)
		}
		if c.policy != "" && (h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" || h.Get("Cache-Control") != "private, no-store") {
			t.Errorf("%s as %q: %v", c.name, c.to, h)
		}
	}
	for _, token := range []string{ciToken, opsToken, scrapeTok} {
		if r := x.get(at+"a.html", token); r.StatusCode != http.StatusForbidden {
			t.Errorf("%s may see it: %d", token, r.StatusCode)
		}
	}
	if r := x.get(at+"a.html", ""); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("nobody may see it: %d", r.StatusCode)
	}
}
