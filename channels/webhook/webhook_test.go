package webhook_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/bus"
	"parley/channels/webhook"
)

// TestRefusedRequests checks the status for each mistake, and that nothing is sent.
func TestRefusedRequests(t *testing.T) {
	alert, push, build := webhook.Alertmanager, webhook.GitHub, webhook.JSON
	rigs := map[string]*rig{}
	for _, kind := range []string{alert, push, build} {
		rigs[kind] = newRig(t, testConfig{kind: kind})
	}
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for name, c := range map[string]struct {
		kind   string
		body   string // "" means a valid body
		spoil  func(*http.Request)
		status int
		code   string
	}{
		"no token":        {alert, "", func(r *http.Request) { r.Header.Del("Authorization") }, 401, "unauthorized"},
		"wrong token":     {alert, "", header("Authorization", "Bearer "+token+"x"), 401, "unauthorized"},
		"another scheme":  {alert, "", header("Authorization", "Basic "+token), 401, "unauthorized"},
		"no signature":    {push, "", func(r *http.Request) { r.Header.Del("X-Hub-Signature-256") }, 401, "unauthorized"},
		"wrong signature": {push, "", header("X-Hub-Signature-256", sign("something else")), 401, "unauthorized"},
		"old signature":   {push, "", header("X-Hub-Signature-256", "sha1=da39a3ee5e6b4b0d3255bfef95601890afd80709"), 401, "unauthorized"},
		"token for GitHub": {push, "", func(r *http.Request) {
			r.Header.Del("X-Hub-Signature-256")
			header("Authorization", "Bearer "+secret)(r)
		}, 401, "unauthorized"},
		"signature, no token": {alert, "", func(r *http.Request) { r.Header.Del("Authorization"); header("X-Hub-Signature-256", sign(""))(r) }, 401, "unauthorized"},
		"wrong method":        {alert, "", func(r *http.Request) { r.Method = http.MethodPut }, 405, "method_not_allowed"},
		"not JSON by type":    {alert, "", header("Content-Type", "text/plain"), 415, "unsupported_media_type"},
		"no type":             {alert, "", func(r *http.Request) { r.Header.Del("Content-Type") }, 415, "unsupported_media_type"},
		"a form elsewhere":    {build, "", header("Content-Type", "application/x-www-form-urlencoded"), 415, "unsupported_media_type"},
		"too large":           {alert, `{"alerts":[{}],"x":"` + strings.Repeat("x", 1<<20) + `"}`, nil, 413, "too_large"},
		"not JSON":            {build, `{"a":`, nil, 400, "bad_request"},
		"two values":          {build, `{} {}`, nil, 400, "bad_request"},
		"no object":           {build, `[]`, nil, 400, "bad_request"},
		"null":                {build, `null`, nil, 400, "bad_request"},
		"no alerts":           {alert, `{"alerts":[]}`, nil, 400, "bad_request"},
		"no event":            {push, "", func(r *http.Request) { r.Header.Del("X-GitHub-Event") }, 400, "bad_request"},
		"an empty form":       {push, "a=b", nil, 400, "bad_request"},
	} {
		t.Run(name, func(t *testing.T) {
			d := *rigs[c.kind]
			d.TB = t
			body := c.body
			if body == "" {
				body = d.readExample(map[string]string{alert: "alertmanager.firing", push: "github.push", build: "json.build"}[c.kind])
			}
			r := d.request("push", body)
			if c.spoil != nil {
				c.spoil(r)
			}
			a := d.send(r)
			if a.status != c.status || a.Error.Code != c.code || a.Error.Message == "" {
				t.Errorf("%d %+v, want %d %s", a.status, a.Error, c.status, c.code)
			}
			if auth := a.header.Get("WWW-Authenticate"); (auth != "") != (c.status == 401) {
				t.Errorf("WWW-Authenticate: %q", auth)
			}
			if allow := a.header.Get("Allow"); (allow == "POST") != (c.status == 405) {
				t.Errorf("Allow: %q", allow)
			}
			if n := len(d.takeOutbound()); n != 0 {
				t.Errorf("%d messages were sent", n)
			}
		})
	}
}

// If a body does not arrive in time, the sender gets an answer. The deadline applies only to the body.
func TestSlowBody(t *testing.T) {
	d := newRig(t, testConfig{kind: webhook.JSON, bodyTimeout: 50 * time.Millisecond})
	conn, err := net.Dial("tcp", strings.TrimPrefix(d.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", token)
	answer, err := io.ReadAll(conn) // the read ends because the connection is closed
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(answer), "HTTP/1.1 408 ") || !strings.Contains(string(answer), `"code":"timeout"`) {
		t.Errorf("it answers %s", answer)
	}
	d.mustAccept(d.exampleRequest("json.build"))
}

func TestAuthentication(t *testing.T) {
	d := newRig(t, testConfig{kind: webhook.JSON, template: "{{ .build.id }}"})
	d.mustAccept(d.exampleRequest("json.build"))
	signed := d.exampleRequest("json.build")
	signed.Header.Del("Authorization")
	signed.Header.Set("X-Hub-Signature-256", sign(d.readExample("json.build")))
	d.mustAccept(signed)
	if got := d.takeOutbound(); len(got) != 2 || got[0].Text != "7" || got[0].Origin != "webhook/hook" {
		t.Errorf("sent: %+v", got)
	}
}

func TestJSONKeys(t *testing.T) {
	d := newRig(t, testConfig{kind: webhook.JSON})
	post := func(key, body string) response {
		r := d.request("", body)
		r.Header.Set("Idempotency-Key", key)
		return d.send(r)
	}
	one, again, other := post("k", `{"a":1}`), post("k", `{"a":1}`), post("k", `{"a":2}`)
	if one.status != 202 || again.status != 202 || one.ID != again.ID || other.status != 409 {
		t.Errorf("%+v\n%+v\n%+v", one, again, other)
	}
	d.onlyMessage()
}

func TestGitHub(t *testing.T) {
	d := newRig(t, testConfig{kind: webhook.GitHub})
	ping := d.mustAccept(d.request("ping", `{"zen":"Design for failure.","hook_id":1}`))
	if ping.ID != "" || ping.Destinations == nil || len(ping.Destinations) != 0 {
		t.Errorf("the answer to a ping: %+v", ping)
	}
	first := d.mustAccept(d.exampleRequest("github.push"))
	if len(first.Destinations) != 1 || first.Destinations[0].Address != "slack:CI" || first.Destinations[0].State != "queued" {
		t.Errorf("the answer: %+v", first)
	}
	if again := d.mustAccept(d.exampleRequest("github.push")); again.ID != first.ID {
		t.Errorf("a delivery that comes again is %s, was %s", again.ID, first.ID)
	}
	text := d.onlyMessage().Text

	asForm := d.request("push", formBody(d.readExample("github.push")))
	asForm.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	asForm.Header.Set("X-GitHub-Delivery", "another")
	d.mustAccept(asForm)
	if got := d.onlyMessage().Text; got != text {
		t.Errorf("as a form it reads\n%s\nwant\n%s", got, text)
	}
	other := d.request("push", `{"ref":"refs/heads/x"}`)
	if a := d.send(other); a.status != 409 || a.Error.Code != "conflict" {
		t.Errorf("another body under that delivery: %+v", a)
	}
}

func TestRoutes(t *testing.T) {
	route := func(to string, pairs ...string) webhook.Route {
		match := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			match[pairs[i]] = pairs[i+1]
		}
		return webhook.Route{Match: match, To: []string{to}}
	}
	const there = "ONCALL"
	rigs := map[string]*rig{}
	for _, kind := range []string{webhook.Alertmanager, webhook.GitHub, webhook.JSON} {
		rigs[kind] = newRig(t, testConfig{kind: kind})
	}
	for name, c := range map[string]struct {
		kind, event, body string
		route             webhook.Route
		taken             bool
	}{
		"common label":      {"alertmanager", "", "alertmanager.firing", route("oncall", "severity", "critical"), true},
		"another value":     {"alertmanager", "", "alertmanager.firing", route("oncall", "severity", "Critical"), false},
		"no common label":   {"alertmanager", "", "alertmanager.firing", route("oncall", "instance", "web-2.example.net:9100"), false},
		"both":              {"alertmanager", "", "alertmanager.firing", route("oncall", "severity", "critical", "job", "node"), true},
		"one of both":       {"alertmanager", "", "alertmanager.firing", route("oncall", "severity", "critical", "job", "web"), false},
		"missing for empty": {"alertmanager", "", "alertmanager.firing", route("oncall", "team", ""), false},
		"event":             {"github", "push", "github.push", route("oncall", "event", "push"), true},
		"another event":     {"github", "push", "github.push", route("oncall", "event", "star"), false},
		"path":              {"github", "push", "github.push", route("oncall", "repository.name", "Hello-World", "event", "push"), true},
		"truth":             {"github", "push", "github.push", route("oncall", "forced", "true"), true},
		"element":           {"github", "push", "github.push", route("oncall", "commits.1.author.name", "octocat"), true},
		"beyond the end":    {"github", "push", "github.push", route("oncall", "commits.2.author.name", ""), false},
		"number":            {"json", "", "json.build", route("oncall", "build.took", "12.5"), true},
		"path of nothing":   {"json", "", "json.build", route("oncall", "build.id.more", "7"), false},
	} {
		t.Run(name, func(t *testing.T) {
			d := rigs[c.kind]
			d.advance(time.Hour)
			d.routes = []webhook.Route{c.route, route("ci")}
			d.restart()
			r := d.request(c.event, d.readExample(c.body))
			r.Header.Set("X-GitHub-Delivery", name)
			d.mustAccept(r)
			if got := d.onlyMessage().To.Chat; (got == there) != c.taken {
				t.Errorf("it goes to %s", got)
			}
		})
	}
	d := newRig(t, testConfig{kind: webhook.JSON, routes: []webhook.Route{route("ci", "a", "1"), route("oncall", "a", "1"), route("oncall", "b.c", "2")}})
	d.mustAccept(d.request("", `{"a":1}`))
	d.mustAccept(d.request("", `{"b.c":2}`))
	var chats []string
	for _, out := range d.takeOutbound() {
		chats = append(chats, out.To.Chat)
	}
	if slices.Sort(chats); !slices.Equal(chats, []string{"CI", there}) {
		t.Errorf("they go to %v", chats)
	}
}

func TestFullMailbox(t *testing.T) {
	d := newRig(t, testConfig{kind: webhook.Alertmanager, cap: 1})
	d.mustAccept(d.exampleRequest("alertmanager.firing"))
	a := d.send(d.exampleRequest("alertmanager.resolved"))
	if a.status != 503 || a.Error.Code != "mailbox_full" || a.header.Get("Retry-After") == "" {
		t.Errorf("a full mailbox is %+v", a)
	}
	d.onlyMessage()
	// When Alertmanager posts it again, it is sent once.
	d.mustAccept(d.exampleRequest("alertmanager.resolved"))
	d.mustAccept(d.exampleRequest("alertmanager.resolved"))
	d.onlyMessage()
}

func TestAPostThatIsNotDurableGets503(t *testing.T) {
	for name, breakIt := range map[string]func(*rig){
		"the bus is gone":       func(d *rig) { d.bus.Close() },
		"a target went missing": func(d *rig) { d.outbox.Targets = func() map[string][]bus.Address { return nil } },
	} {
		t.Run(name, func(t *testing.T) {
			d := newRig(t, testConfig{kind: webhook.Alertmanager})
			breakIt(d)
			if a := d.send(d.exampleRequest("alertmanager.firing")); a.status != 503 || a.header.Get("Retry-After") == "" {
				t.Errorf("it answers %+v", a)
			}
		})
	}
}

func TestWithConfigKeepsKnownNotifications(t *testing.T) {
	d := newRig(t, testConfig{kind: webhook.Alertmanager})
	d.mustAccept(d.exampleRequest("alertmanager.firing"))
	d.advance(time.Minute)
	c := d.config()
	c.To = []string{"oncall"}
	next, err := d.handler.WithConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	d.handler = next
	d.mustAccept(d.exampleRequest("alertmanager.firing")) // still recognized as a twin
	d.onlyMessage()
	d.mustAccept(d.exampleRequest("alertmanager.resolved"))
	if out := d.onlyMessage(); out.To.Chat != "ONCALL" {
		t.Errorf("it goes to %s", out.To)
	}
	c.Template = "{{ if }}"
	if _, err := d.handler.WithConfig(c); err == nil || !strings.Contains(err.Error(), "webhook hook: template:1: missing value for if") {
		t.Errorf("a template that is none: %v", err)
	}
}

// A route without destinations drops the posts that match it. A later alert counts as new.
func TestARouteDrops(t *testing.T) {
	for kind, c := range map[string]struct {
		event, file string
		match       map[string]string
	}{
		webhook.Alertmanager: {"", "alertmanager.firing", map[string]string{"severity": "critical"}},
		webhook.GitHub:       {"push", "github.push", map[string]string{"event": "push"}},
		webhook.JSON:         {"", "json.build", map[string]string{"build.took": "12.5"}},
	} {
		t.Run(kind, func(t *testing.T) {
			d := newRig(t, testConfig{kind: kind, routes: []webhook.Route{{Match: c.match, To: []string{}}}})
			if a := d.mustAccept(d.request(c.event, d.readExample(c.file))); a.Destinations == nil || len(a.Destinations) != 0 {
				t.Errorf("it is answered with %+v", a)
			}
			if n := len(d.takeOutbound()); n != 0 {
				t.Errorf("%d messages were sent", n)
			}
			d.routes = nil
			d.restart()
			d.mustAccept(d.request(c.event, d.readExample(c.file)))
			d.onlyMessage()
		})
	}
}
