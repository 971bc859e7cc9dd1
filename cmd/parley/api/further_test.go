package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"parley/cmd/parley/api"
	"parley/cmd/parley/api/exchange"
	"parley/sessions"
)

// A lamp is a resource of another package, with its own routes.
type lamp struct{ color string }

func (l *lamp) routes() []exchange.Route {
	return []exchange.Route{
		{Pattern: "GET /v1/lamps", May: exchange.Caller.MayReadAll, Serve: l.list},
		{Pattern: "POST /v1/lamps/{name}", May: exchange.Caller.IsAdmin, Serve: l.paint, Audit: "lamp", Result: "painted"},
		{Pattern: "GET /lamps/{name}/seen", Open: true, Public: true, Serve: l.seen},
	}
}

func (l *lamp) list(w *exchange.Answer, r *http.Request) error {
	limit, err := exchange.Limit(r)
	if err != nil {
		return err
	}
	return w.JSON(http.StatusOK, map[string]any{"color": l.color, "limit": limit})
}

func (l *lamp) paint(w *exchange.Answer, r *http.Request) error {
	w.ID, w.Subject = r.PathValue("name"), r.PathValue("name")
	if w.ID != "desk" {
		return exchange.NotFound("there is no such lamp")
	}
	color, err := w.ReadText(r, "color")
	if err != nil {
		return err
	}
	l.color = color
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (l *lamp) seen(w *exchange.Answer, _ *http.Request) error {
	return w.JSON(http.StatusOK, struct{}{})
}

// The API guards, answers and audits the routes of other packages like its own.
func TestRequestsOfAnotherPackage(t *testing.T) {
	lamp := &lamp{color: "red"}
	var recorded []sessions.AuditRecord
	x := newRig(t, func(x *rig) {
		x.cfg.Further = lamp.routes()
		x.cfg.Access.Public = func() []string { return []string{"bot.example"} }
		x.cfg.Audit = api.Audit{Record: func(_ context.Context, r sessions.AuditRecord) error {
			recorded = append(recorded, r)
			return nil
		}}
	})
	for _, step := range []struct {
		method, path, token, host, body string
		status                          int
		want                            string
	}{
		{"GET", "/v1/lamps", "", "localhost", "", 401, `"unauthorized"`},
		{"GET", "/v1/lamps", opsToken, "localhost", "", 403, `"forbidden"`},
		{"GET", "/v1/lamps?limit=0", readToken, "localhost", "", 400, `\"limit\" must be a number`},
		{"GET", "/v1/lamps?limit=5000", readToken, "localhost", "", 200, `{"color":"red","limit":1000}`},
		{"POST", "/v1/lamps/desk", readToken, "localhost", `{"color": "blue"}`, 403, `"forbidden"`},
		{"POST", "/v1/lamps/desk", adminToken, "localhost", `{"colour": "blue"}`, 422, `did you mean \"color\"?`},
		{"POST", "/v1/lamps/floor", adminToken, "localhost", `{"color": "blue"}`, 404, "there is no such lamp"},
		{"DELETE", "/v1/lamps/desk", adminToken, "localhost", "", 405, "this path only takes POST"},
		{"POST", "/v1/lamps/desk", adminToken, "localhost", `{"color": "blue"}`, 204, ""},
		{"GET", "/lamps/desk/seen", "", "bot.example", "", 200, "{}"},
		{"GET", "/lamps/desk/seen", "", "evil.example", "", 403, "unknown_host"},
		{"GET", "/v1/lamps", readToken, "bot.example", "", 403, "unknown_host"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), step.method, step.path, strings.NewReader(step.body))
		r.Host = step.host
		r.Header.Set("Content-Type", "application/json")
		if step.token != "" {
			r.Header.Set("Authorization", "Bearer "+step.token)
		}
		w := httptest.NewRecorder()
		x.ServeHTTP(w, r)
		if w.Code != step.status || !strings.Contains(w.Body.String(), step.want) {
			t.Errorf("%s %s as %q: %d %s, want %d %s", step.method, step.path, step.token, w.Code, w.Body, step.status, step.want)
		}
	}
	if lamp.color != "blue" {
		t.Errorf("the lamp is %s", lamp.color)
	}
	if len(recorded) != 1 || recorded[0].Kind != "lamp" || recorded[0].By != "token:boss" || recorded[0].Result != "painted" || recorded[0].Detail != "desk" {
		t.Errorf("recorded are %+v, want one of the desk's lamp", recorded)
	}
}
