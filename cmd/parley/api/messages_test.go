package api_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/bus"
	"parley/channels"
	"parley/channels/outbox"
	"parley/cmd/parley/api"
)

type accepted struct {
	ID           string
	Destinations []outbox.Destination
	Session      string
}

func TestPostMessage(t *testing.T) {
	x := newRig(t)
	file := base64.StdEncoding.EncodeToString([]byte("the log"))
	r := x.post(opsToken, `{"to": ["oncall", "slack:C0BUILDS"], "text": "**down**", "key": "db", "expires": "2099-01-02T03:04:05Z",
		"urgent": true, "file": {"name": "db.log", "data": "`+file+`"}}`)
	if r.StatusCode != http.StatusAccepted {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	got := into[accepted](t, r)
	if len(got.Destinations) != 2 || got.Destinations[0].Address != builds.String() || got.Destinations[0].State != channels.Queued {
		t.Errorf("accepted %s", r.body)
	}
	for _, to := range []bus.Address{builds, alerts} {
		_, mail := x.claim(bus.OutboundTopic(to.Channel))
		out, err := bus.DecodeOutbound(mail[0].Body)
		if err != nil || len(mail) != 1 || !mail[0].Urgent {
			t.Fatalf("%d messages, %v", len(mail), err)
		}
		if out.To != to || out.Text != "**down**" || out.Subject != "db" || out.Origin != "ops" || out.Expires.Year() != 2099 ||
			out.File == nil || out.File.Name != "db.log" || string(out.File.Data) != "the log" {
			t.Errorf("published %+v", out)
		}
	}
	state := into[accepted](t, x.get("/v1/messages/"+got.ID, opsToken))
	if state.ID != got.ID || state.Destinations[1].State != channels.Queued {
		t.Errorf("state %+v", state)
	}
}

// The sender of a message decides who sees it. For other callers it doesn't exist.
func TestMessagesAreTheirSenders(t *testing.T) {
	x := newRig(t)
	id := into[accepted](t, x.post(ciToken, `{"to": "ci", "text": "x"}`)).ID
	for token, want := range map[string]int{
		ciToken: 200, readToken: 200, adminToken: 200, ownerToken: 200, opsToken: 404, chatToken: 404, scrapeTok: 403, "": 401,
	} {
		if r := x.get("/v1/messages/"+id, token); r.StatusCode != want {
			t.Errorf("%s: %d, want %d", token, r.StatusCode, want)
		}
	}
	if r := x.get("/v1/messages/m_none", readToken); r.StatusCode != 404 {
		t.Errorf("an unknown id: %d", r.StatusCode)
	}
}

func TestIdempotencyKey(t *testing.T) {
	x := newRig(t)
	same := header("Idempotency-Key", "build-7")
	body := `{"to": "ci", "text": "x"}`
	first, again := x.post(opsToken, body, same), x.post(opsToken, body, same)
	if first.StatusCode != 202 || again.StatusCode != 202 || string(first.body) != string(again.body) {
		t.Errorf("%d %s\n%d %s", first.StatusCode, first.body, again.StatusCode, again.body)
	}
	if r := x.post(opsToken, `{"to": "ci", "text": "y"}`, same); r.StatusCode != 409 {
		t.Errorf("another body: %d", r.StatusCode)
	}
	if r := x.post(ciToken, `{"to": "ci", "text": "y"}`, same); r.StatusCode != 202 {
		t.Errorf("another token's key: %d", r.StatusCode)
	}
	if r := x.post(opsToken, body, header("Idempotency-Key", strings.Repeat("k", 256))); r.StatusCode != 400 {
		t.Errorf("a long key: %d", r.StatusCode)
	}
	if n := x.waiting(); n != 2 {
		t.Errorf("%d messages, want 2", n)
	}
}

// Each bad request gets its own status and code, and sends nothing.
func TestRefusals(t *testing.T) {
	x := newRig(t, func(x *rig) {
		x.cfg.Agent.Models = func() map[string]bool { return map[string]bool{"main": false, "ops": true, "mute": false} }
	})
	const fine = `{"to": "ci", "text": "secret words"}`
	big := `{"to": "ci", "text": "` + strings.Repeat("x", 1<<20) + `"}`
	half := base64.StdEncoding.EncodeToString(make([]byte, 5<<20+1))
	huge := `{"to": "ci", "file": {"name": "x", "data": "` + base64.StdEncoding.EncodeToString(make([]byte, 10<<20+1)) + `"}}`
	for _, c := range []struct {
		name    string
		token   string
		body    string
		option  option
		status  int
		code    string
		message string // a part of the message
	}{
		{"no token", "", fine, nil, 401, "unauthorized", "Bearer"},
		{"unknown token", "nobody's", fine, nil, 401, "unauthorized", "doesn't know this token"},
		{"empty token", "", fine, header("Authorization", "Bearer "), 401, "unauthorized", ""},
		{"another scheme", "", fine, header("Authorization", "Basic "+opsToken), 401, "unauthorized", ""},
		{"scope of another kind", readToken, fine, nil, 403, "forbidden", "scopes"},
		{"scope of another target", ciToken, `{"to": "oncall", "text": "x"}`, nil, 403, "forbidden", `"oncall"`},
		{"scope before existence", ciToken, `{"to": "oncal", "text": "x"}`, nil, 403, "forbidden", `"oncal"`},
		{"scope of the target and not its address", ciToken, `{"to": "slack:C0BUILDS", "text": "x"}`, nil, 403, "forbidden", ""},
		{"one of two", ciToken, `{"to": ["ci", "oncall"], "text": "x"}`, nil, 403, "forbidden", ""},
		{"agent without its scope", opsToken, `{"to": "agent", "text": "x"}`, nil, 403, "forbidden", ""},
		{"foreign host", opsToken, fine, header("Host", "evil.example"), 403, "unknown_host", "hosts"},
		{"another port's origin", opsToken, fine, func(r *http.Request) {
			r.Host = "parley.internal:7275"
			r.Header.Set("Origin", "http://parley.internal:9999")
		}, 403, "foreign_origin", ""},
		{"the usual port's origin", opsToken, fine, func(r *http.Request) {
			r.Host = "parley.internal:7275"
			r.Header.Set("Origin", "http://parley.internal")
		}, 403, "foreign_origin", ""},
		{"another port's origin behind a proxy", opsToken, fine, header("Origin", "https://parley.internal:9999"), 403, "foreign_origin", ""},
		{"compressed", opsToken, fine, header("Content-Encoding", "gzip"), 415, "compressed", "Content-Encoding"},
		{"no destination", opsToken, `{"text": "x"}`, nil, 422, "no_destination", `"to"`},
		{"no origin", opsToken, fine, header("Origin", "null"), 403, "foreign_origin", ""},
		{"foreign origin", opsToken, fine, header("Origin", "https://evil.example"), 403, "foreign_origin", ""},
		{"another port's origin", opsToken, fine, header("Origin", "http://127.0.0.1:1"), 403, "foreign_origin", ""},
		{"too large", opsToken, big, nil, 413, "too_large", "1048576"},
		{"too large a file", opsToken, huge, nil, 413, "too_large", "10485760"},
		{"not JSON by type", opsToken, fine, header("Content-Type", "application/x-www-form-urlencoded"), 415, "not_json", "application/json"},
		{"no type", opsToken, fine, header("Content-Type", ""), 415, "not_json", ""},
		{"not JSON", opsToken, `{"to": "ci",`, nil, 400, "bad_json", ""},
		{"two values", opsToken, fine + fine, nil, 400, "bad_json", ""},
		{"no object", opsToken, `["ci"]`, nil, 400, "bad_type", "object"},
		{"null", opsToken, `null`, nil, 400, "bad_type", "object"},
		{"wrong type", opsToken, `{"to": 7, "text": "x"}`, nil, 400, "bad_type", `"to"`},
		{"no time", opsToken, `{"to": "ci", "text": "x", "expires": "tomorrow"}`, nil, 400, "bad_type", "RFC 3339"},
		{"no base64", opsToken, `{"to": "ci", "file": {"name": "x", "data": "%"}}`, nil, 400, "bad_type", "base64"},
		{"half a file", opsToken, `{"to": "ci", "file": {"name": "x"}}`, nil, 400, "bad_type", ""},
		{"file by path", opsToken, `{"to": "ci", "file": {"name": "x", "path": "/etc/passwd"}}`, nil, 422, "unknown_field", "path"},
		{"name with a path", opsToken, `{"to": "ci", "file": {"name": "../x", "data": "eA=="}}`, nil, 422, "bad_file_name", ""},
		{"unknown field", opsToken, `{"too": "ci", "text": "x"}`, nil, 422, "unknown_field", `did you mean "to"`},
		{"unknown target", opsToken, `{"to": "onkall", "text": "x"}`, nil, 422, "unknown_target", `did you mean "oncall"`},
		{"unknown channel", opsToken, `{"to": "slak:C1", "text": "x"}`, nil, 422, "unknown_channel", `did you mean "slack"`},
		{"the web is no channel", opsToken, `{"to": "web:ci", "text": "x"}`, nil, 422, "unknown_channel", ""},
		{"nowhere", opsToken, `{"text": "x"}`, nil, 422, "no_destination", ""},
		{"nothing", opsToken, `{"to": "ci", "text": " "}`, nil, 422, "empty", ""},
		{"session of people", opsToken, `{"to": "ci", "text": "x", "session": "y"}`, nil, 422, "not_for_people", ""},
		{"another agent without the scope", opsToken, `{"to": "agent:ops", "text": "x"}`, nil, 403, "forbidden", "agent:ops"},
		{"scope before the agent's existence", opsToken, `{"to": "agent:nobody", "text": "x"}`, nil, 403, "forbidden", ""},
		{"an unknown agent", chatToken, `{"to": "agent:opps", "text": "x"}`, nil, 422, "unknown_agent", `did you mean "agent:ops"`},
		{"an agent like no other", chatToken, `{"to": "agent:", "text": "x"}`, nil, 422, "unknown_agent", "main, mute, ops"},
		{"an agent without a model", chatToken, `{"to": "agent:mute", "text": "x"}`, nil, 422, "no_model", "agents.mute.model"},
		{"two agents", chatToken, `{"to": ["agent:ops", "agent"], "text": "x"}`, nil, 422, "agent_alone", ""},
		{"another agent's session", chatToken, `{"to": "agent:ops", "text": "x", "session": "mute:web:chat"}`, nil, 422, "other_agent", `"agent:mute"`},
		{"somebody else's session", chatToken, `{"to": "agent:ops", "text": "x", "session": "ops:web:other"}`, nil, 403, "forbidden", ""},
		{"files to people", opsToken, `{"to": "ci", "text": "x", "files": [{"name": "a", "data": "eA=="}]}`, nil, 422, "not_for_people", ""},
		{"files that are paths", chatToken, `{"to": "agent:ops", "text": "x", "files": [{"name": "../a", "data": "eA=="}]}`, nil, 422, "bad_file_name", ""},
		{"files without content", chatToken, `{"to": "agent:ops", "text": "x", "files": [{"name": "a"}]}`, nil, 400, "bad_type", ""},
		{"an empty file", chatToken, `{"to": "agent:ops", "text": "x", "files": [{"name": "a", "data": ""}]}`, nil, 422, "empty_file", ""},
		{"many files", chatToken, `{"to": "agent:ops", "files": [` + strings.Repeat(`{"name": "a", "data": "eA=="},`, 10) + `{"name": "a", "data": "eA=="}]}`, nil, 422, "too_many_files", ""},
		{"no list of files", chatToken, `{"to": "agent:ops", "text": "x", "files": {"name": "a", "data": "eA=="}}`, nil, 400, "bad_type", "list"},
		{"files that are too large", chatToken, `{"to": "agent:ops", "files": [{"name": "a", "data": "` + half + `"}, {"name": "b", "data": "` + half + `"}]}`, nil, 413, "too_large", ""},
		{"no model", chatToken, `{"to": "agent", "text": "x"}`, nil, 422, "no_model", "[model]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var options []option
			if c.option != nil {
				options = append(options, c.option)
			}
			r := x.post(c.token, c.body, options...)
			if r.StatusCode != c.status || r.code() != c.code || !strings.Contains(string(r.body), strings.ReplaceAll(c.message, `"`, `\"`)) {
				t.Errorf("%d %s, want %d %s %q", r.StatusCode, r.body, c.status, c.code, c.message)
			}
			if names := string(r.body); c.status == 403 && c.code == "forbidden" && strings.Count(names, "oncall") > strings.Count(c.body, "oncall") {
				t.Errorf("it tells of other targets: %s", names)
			}
		})
	}
	if n := x.waiting(); n != 0 {
		t.Errorf("%d messages were sent", n)
	}
	x.quietAbout("secret words", ownerToken, opsToken, ciToken)
}

// quietAbout fails the test if the rig's log contains one of the secrets, or is empty.
func (x *rig) quietAbout(secrets ...string) {
	x.t.Helper()
	log := x.log.String()
	if !strings.Contains(log, `"msg":"request"`) {
		x.t.Error("nothing was logged at all")
	}
	for _, s := range secrets {
		if strings.Contains(log, s) {
			x.t.Errorf("the log tells %q", s)
		}
	}
}

func TestWhatIsLetIn(t *testing.T) {
	x := newRig(t)
	host := strings.TrimPrefix(x.base, "http://")
	for name, o := range map[string]option{
		"loopback name":     header("Host", "localhost:9"),
		"below localhost":   header("Host", "a.localhost"),
		"address":           header("Host", "192.0.2.7"),
		"IPv6 address":      header("Host", "[::1]:7275"),
		"configured name":   header("Host", "Parley.Internal:7275"),
		"own origin":        header("Origin", "http://"+host),
		"configured origin": header("Origin", "https://parley.internal"),
		"charset":           header("Content-Type", "application/json; charset=utf-8"),
		"lower case scheme": header("Authorization", "bearer "+opsToken),
	} {
		if r := x.post(opsToken, `{"to": "slack:C9/5", "text": "x"}`, o); r.StatusCode != 202 {
			t.Errorf("%s: %d %s", name, r.StatusCode, r.body)
		}
	}
}

func TestPathsAndMethods(t *testing.T) {
	x := newRig(t)
	for _, c := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"GET", "/nothing", 404, ""},
		{"GET", "/v1/nothing", 404, ""},
		{"GET", "/v1/sessions/", 404, ""},
		{"GET", "/v1/messages", 405, "POST"},
		{"DELETE", "/v1/messages/m_1", 405, "GET, HEAD"},
		{"PUT", "/v1/dead-letters/inbound/x", 405, "DELETE, GET, HEAD"},
		{"GET", "/webhooks/x", 405, "POST"},
	} {
		r := x.do(c.method, c.path, ownerToken, "")
		if r.StatusCode != c.status || r.Header.Get("Allow") != c.allow || r.code() == "" {
			t.Errorf("%s %s: %d, Allow %q, %s", c.method, c.path, r.StatusCode, r.Header.Get("Allow"), r.body)
		}
	}
}

func TestFullMailbox(t *testing.T) {
	x := newRig(t)
	for n := range 3 {
		if r := x.post(chatToken, fmt.Sprintf(`{"to": "agent", "text": "%d"}`, n)); r.StatusCode != 202 {
			t.Fatalf("%d %s", r.StatusCode, r.body)
		}
	}
	if r := x.post(chatToken, `{"to": "agent", "text": "4"}`); r.StatusCode != 429 || r.code() != "mailbox_full" {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	if r := x.post(chatToken, `{"to": "agent", "text": "/stop"}`); r.StatusCode != 202 {
		t.Errorf("/stop does not pass: %d %s", r.StatusCode, r.body)
	}
}

// Urgent messages may exceed the limit of a full mailbox; from a token without the scope admin, by a hundred
// messages. A mailbox is limited in bytes, too.
func TestFullMailboxOfAnAddress(t *testing.T) {
	x := newRigOf(t, bus.Caps{Outbound: 1, Bytes: 64 << 10})
	say := func(token, extra string) reply {
		return x.post(token, `{"to": "slack:C0BUILDS", "text": "x"`+extra+`}`)
	}
	if r := say(opsToken, ""); r.StatusCode != 202 {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	for range bus.UrgentBeyond {
		if r := say(opsToken, `, "urgent": true`); r.StatusCode != 202 {
			t.Fatalf("%d %s", r.StatusCode, r.body)
		}
	}
	if r := say(opsToken, `, "urgent": true`); r.StatusCode != 429 || r.code() != "mailbox_full" || r.Header.Get("Retry-After") == "" {
		t.Errorf("one more: %d %s", r.StatusCode, r.body)
	}
	for _, token := range []string{adminToken, ownerToken} {
		if r := say(token, `, "urgent": true`); r.StatusCode != 202 {
			t.Errorf("the owner's: %d %s", r.StatusCode, r.body)
		}
	}
	file := `{"to": "telegram:-10033", "text": "x", "file": {"name": "a", "data": "` + strings.Repeat("AAAA", 10<<10) + `"}}`
	if r := x.post(opsToken, file); r.StatusCode != 202 {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	if r := x.post(adminToken, strings.Replace(file, `"text"`, `"urgent": true, "text"`, 1)); r.StatusCode != 202 {
		t.Errorf("the owner's: %d %s", r.StatusCode, r.body)
	}
	r := x.post(opsToken, strings.Replace(file, `"text"`, `"urgent": true, "text"`, 1))
	if r.StatusCode != 429 || r.code() != "too_much_waiting" || r.Header.Get("Retry-After") == "" || !strings.Contains(string(r.body), "too much is already waiting for telegram:-10033") {
		t.Errorf("too many bytes: %d %s", r.StatusCode, r.body)
	}
}

func TestWhatCannotBeMadeDurable(t *testing.T) {
	x := newRig(t)
	if err := x.bus.Close(); err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{`{"to": "ci", "text": "secret words"}`, `{"to": "agent", "text": "secret words"}`} {
		if r := x.post(ownerToken, body); r.StatusCode != 503 || r.code() != "unavailable" {
			t.Errorf("%d %s", r.StatusCode, r.body)
		}
	}
	if !strings.Contains(x.log.String(), "request failed") {
		t.Error("the log does not say why")
	}
	x.quietAbout("secret words", ownerToken)
}

// raw sends bytes to the server that no HTTP client would send.
func (x *rig) raw(head string, then ...string) *http.Response {
	x.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(x.base, "http://"))
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { conn.Close() })
	if _, err := fmt.Fprintf(conn, "%s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n\r\n%s", head, opsToken, strings.Join(then, "")); err != nil {
		x.t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		x.t.Fatal(err)
	}
	return resp
}

func TestSlowBody(t *testing.T) {
	x := newRig(t, func(x *rig) { x.cfg.Timeouts.Body = 100 * time.Millisecond })
	for _, head := range []string{"Content-Length: 100", "Transfer-Encoding: chunked"} {
		resp := x.raw("POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n"+head, "5\r\n{\"to\"")
		req, _ := http.NewRequest("POST", x.base+"/v1/messages", nil)
		if r := x.read(req, resp); r.StatusCode != 408 || r.code() != "too_slow" {
			t.Errorf("%s: %d %s", head, r.StatusCode, r.body)
		}
	}
	// The server answers before the body comes, so a refused caller can't keep a connection by sending slowly.
	resp := x.raw("POST /v1/messages HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 100", "{")
	defer resp.Body.Close()
	if resp.StatusCode != 403 {
		t.Errorf("%d", resp.StatusCode)
	}
	// After a deadline was set for one request, the connection still serves the next one.
	for range 2 {
		if r := x.post(opsToken, `{"to": "ci", "text": "x"}`); r.StatusCode != 202 {
			t.Errorf("%d %s", r.StatusCode, r.body)
		}
	}
}

// The server holds only a limited number of large bodies in memory. Small bodies don't count.
func TestLargeBodiesAreFew(t *testing.T) {
	x := newRig(t, func(x *rig) { x.cfg.Timeouts.Room = 50 * time.Millisecond })
	dial := func() {
		conn, err := net.Dial("tcp", strings.TrimPrefix(x.base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		fmt.Fprintf(conn, "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 5000000\r\n\r\n{", opsToken)
	}
	for range api.MaxLarge {
		dial()
	}
	for x.Large() < api.MaxLarge {
		runtime.Gosched()
	}
	if r := x.post(opsToken, `{"to": "ci", "text": "`+strings.Repeat("x", 1<<20)+`"}`); r.StatusCode != 503 || r.code() != "busy" || r.Header.Get("Retry-After") == "" {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	if r := x.post(opsToken, `{"to": "ci", "text": "x"}`); r.StatusCode != 202 {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
}

// Files that arrive at the same time wait for each other, and none is refused.
func TestFilesThatComeAtOnce(t *testing.T) {
	x := newRig(t, func(x *rig) { x.cfg.Timeouts.Room = time.Minute })
	file := base64.StdEncoding.EncodeToString(make([]byte, 1<<20)) // long enough to count as a large body
	var coming sync.WaitGroup
	for range 3 * api.MaxLarge {
		coming.Go(func() {
			if r := x.post(opsToken, `{"to": "ci", "file": {"name": "x", "data": "`+file+`"}}`); r.StatusCode != 202 {
				t.Errorf("%d %s", r.StatusCode, r.body)
			}
		})
	}
	coming.Wait()
	if n := x.Large(); n != 0 {
		t.Errorf("%d places are still taken", n)
	}
}

// A body with broken chunks is answered as the client's error, and nothing in it reaches the log.
func TestABodyWithBrokenChunks(t *testing.T) {
	x := newRig(t)
	for _, chunks := range []string{"secret words\r\n", "5\r\nsecret words", "5\r\nabcde\r\nsecret\r\n", "-1\r\nsecret\r\n"} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(x.base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
			"Transfer-Encoding: chunked\r\n\r\n%s", opsToken, chunks)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != 400 || resp.Header.Get("Retry-After") != "" {
			t.Errorf("%q: %s, come again after %q", chunks, resp.Status, resp.Header.Get("Retry-After"))
		}
		resp.Body.Close()
		conn.Close()
	}
	x.quietAbout("secret")
	x.quietAbout("malformed")
}

func TestUnknownLengthIsBounded(t *testing.T) {
	x := newRig(t)
	r := x.do("POST", "/v1/pairings", adminToken, `{"code": "`+strings.Repeat("x", 1<<20)+`"}`, func(r *http.Request) { r.ContentLength = -1 })
	if r.StatusCode != 413 {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
}

func TestAPanicEndsItsRequestAlone(t *testing.T) {
	x := newRig(t, func(x *rig) {
		x.cfg.Outbox.Targets = func() map[string][]bus.Address { panic("secret words") }
	})
	if r := x.post(opsToken, `{"to": "ci", "text": "x"}`); r.StatusCode != 500 || r.code() != "internal" {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	if r := x.get("/healthz", ""); r.StatusCode != 200 {
		t.Errorf("%d", r.StatusCode)
	}
	if !strings.Contains(x.log.String(), "request panicked") {
		t.Error("nobody is told")
	}
	x.quietAbout("secret words")
}

// The API refuses session names that can't be encoded in a key and read back, and names that are paths. With them,
// the agent would answer under another key or retry forever.
func TestSessionNamesThatCannotBe(t *testing.T) {
	x := newRig(t)
	for _, name := range []string{
		"a\x00b", "\x00", "a\nb", "a\x1b[2J", "\u202eabc", ".", "..", "a/b", "../x", `a\b`, "\u200b", " ", "\u2028", "\ufffd", strings.Repeat("n", 300),
		strings.Repeat("é", 100), "main:web:chat:%FF", "main:web:chat:%00", "main:web:chat:a%2Fb", "main:web:chat:%2E%2E", "main:web:chat:%E2%80%AE", "main:web:chat:a%0Ab",
		"main:web:chat:%ff", "main:web:chat:é", "main:web:chat:a%41", "main:web:chat:", "main:web:chat:x:y",
	} {
		said, err := json.Marshal(map[string]string{"to": "agent", "text": "hello", "session": name})
		if err != nil {
			t.Fatal(err)
		}
		r := x.post(chatToken, string(said))
		if r.StatusCode != 422 || r.code() != "bad_session" {
			t.Errorf("%q: %d %s", name, r.StatusCode, r.body)
		}
	}
	if r := x.post(chatToken, "{\"to\": \"agent\", \"text\": \"hello\", \"session\": \"a\xff\"}"); r.StatusCode != 422 {
		t.Errorf("what is no UTF-8: %d %s", r.StatusCode, r.body)
	}
	if n := x.waiting(); n != 0 {
		t.Errorf("%d messages were published", n)
	}
	for _, path := range []string{"main:web:chat:%FF", "main:web:chat:%00", "main:web:chat:%25ff", "main:web:chat:%25", "%FF", "%00"} {
		if r := x.get("/v1/sessions/"+path, readToken); r.StatusCode != 404 {
			t.Errorf("the path %s: %d %s", path, r.StatusCode, r.body)
		}
	}
}

func TestTellTheAgent(t *testing.T) {
	x := newRig(t)
	for _, c := range []struct {
		token, session string
		to             string // the agent to which the message goes
		key, at, from  string
		owner          bool
	}{
		{chatToken, "", "", "main:web:chat", "web:chat", "web:chat", false},
		{chatToken, "büro", "", "main:web:chat:b%C3%BCro", "web:chat/büro", "web:chat", false},
		{chatToken, "main:web:chat:x", "", "main:web:chat:x", "web:chat/x", "web:chat", false},
		{ownerToken, "", "", "main:web:owner", "web:owner", "web:owner", true},
		{ownerToken, "main:console:default-2", "", "main:console:default-2", "console:default-2", "console:owner", true},
		{chatToken, "", ":ops", "ops:web:chat", "web:chat", "web:chat", false},
		{chatToken, "x", ":ops", "ops:web:chat:x", "web:chat/x", "web:chat", false},
		{chatToken, "ops:web:chat:x", ":ops", "ops:web:chat:x", "web:chat/x", "web:chat", false},
		{chatToken, "ops:web:chat:x", "", "ops:web:chat:x", "web:chat/x", "web:chat", false}, // the key names another agent
		{chatToken, "", ":main", "main:web:chat", "web:chat", "web:chat", false},
	} {
		body, err := json.Marshal(map[string]string{"to": "agent" + c.to, "text": "hello", "session": c.session})
		if err != nil {
			t.Fatal(err)
		}
		r := x.post(c.token, string(body))
		got := into[accepted](t, r)
		if r.StatusCode != 202 || got.Session != c.key {
			t.Errorf("%q: %d %s", c.session, r.StatusCode, r.body)
			continue
		}
		l, mail := x.claim(bus.InboundTopic)
		in, err := bus.DecodeInbound(mail[0].Body)
		if err != nil {
			t.Fatal(err)
		}
		if l.Claim().Key != c.key || in.ID != got.ID || in.Kind != bus.Said || in.Text != "hello" || in.At.String() != c.at || in.From.ID != c.from || in.From.Owner != c.owner {
			t.Errorf("published under %s: %+v", l.Claim().Key, in)
		}
		x.settle(l, bus.End{Done: mail[0].Seq})
		// The state of the message names the same session.
		if state := into[accepted](t, x.get("/v1/messages/"+got.ID, c.token)); state.Session != c.key {
			t.Errorf("%q to agent%s: its state is of %q", c.session, c.to, state.Session)
		}
	}
	for body, want := range map[string]int{
		`{"to": "agent", "text": "x", "session": "main:web:ci"}`:              403,
		`{"to": "agent", "text": "x", "session": "main:slack:C1"}`:            403,
		`{"to": "agent", "text": "x", "session": "main:console:default"}`:     403,
		`{"to": "agent", "text": "x", "session": "other:web:chat"}`:           422,
		`{"to": "agent", "text": "x", "session": "a:b"}`:                      422,
		`{"to": "agent", "text": "` + `", "session": "x"}`:                    422,
		`{"to": ["agent", "agent"], "text": "x"}`:                             422,
		`{"to": "agent", "text": "x", "key": "k"}`:                            422,
		`{"to": "agent", "text": "x", "session": "` + longName(300) + `"}`:    422,
		`{"to": "agent", "text": "x", "file": {"name": "x", "data": "eA=="}}`: 422,
	} {
		if r := x.post(chatToken, body); r.StatusCode != want {
			t.Errorf("%s: %d %s", body, r.StatusCode, r.body)
		}
	}
	if n := x.waiting(); n != 0 {
		t.Errorf("%d messages were sent", n)
	}
}

func longName(n int) string { return strings.Repeat("n", n) }

// The local socket of a home needs no token: everybody who can connect acts as the owner at a terminal.
func TestTheLocalSocket(t *testing.T) {
	x := newRig(t)
	local := x.cfg
	local.Access = api.Access{Local: true}
	path := t.TempDir() + "/parley.sock"
	x.serve(api.New(local), "unix", path)
	x.useSocket(path)
	r := x.post("", `{"to": "agent", "text": "hello", "session": "default-2"}`, header("Host", "parley"))
	if got := into[accepted](t, r); r.StatusCode != 202 || got.Session != "main:console:default-2" {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	_, mail := x.claim(bus.InboundTopic)
	if in, err := bus.DecodeInbound(mail[0].Body); err != nil || in.From.ID != "console:owner" || !in.From.Owner {
		t.Errorf("%+v, %v", in, err)
	}
	if r := x.post("", `{"to": "agent", "text": "hello"}`); into[accepted](t, r).Session != "main:console:default" {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	if r := x.get("/v1/status", ""); r.StatusCode != 200 {
		t.Errorf("%d", r.StatusCode)
	}
	if r := x.post("", `{"to": "ci", "text": "x"}`); r.StatusCode != 202 {
		t.Errorf("%d", r.StatusCode)
	}
}

// A path that isn't clean is not found, and redirects nowhere.
func TestUncleanPaths(t *testing.T) {
	x := newRig(t)
	x.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for _, path := range []string{"//v1//sessions", "/v1/../v1/sessions", "/v1/./sessions", "/v1/sessions/", "//"} {
		if r := x.get(path, ownerToken); r.StatusCode != 404 || r.code() != "not_found" || r.Header.Get("Location") != "" {
			t.Errorf("%s: %d %s", path, r.StatusCode, r.body)
		}
	}
	if r := x.get("/v1/dead-letters/outbound%2Fslack/m_1%2F0", ownerToken); r.StatusCode != 404 || !strings.Contains(string(r.body), "dead letter") {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
}

// The log shortens names that come from requests, so callers without a token can't fill it.
func TestLongNamesAreLoggedShort(t *testing.T) {
	x := newRig(t)
	if r := x.do("POST", "/webhooks/"+strings.Repeat("n", 8000), "", "{}"); r.StatusCode != 404 {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	x.quietAbout(strings.Repeat("n", 300))
}

// A channel that receives by HTTP gets its requests unchanged, without a token, and under the public host name.
func TestRequestsForChannels(t *testing.T) {
	got := make(chan string, 10)
	x := newRig(t, func(x *rig) {
		x.cfg.Access.Public = func() []string { return []string{"bot.example"} }
		x.cfg.Receivers = func() map[string]http.Handler {
			return map[string]http.Handler{"slack": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				got <- r.Header.Get("X-Signed") + " " + string(body)
			})}
		}
	})
	ask := func(path, host, body string) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, x.base+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		req.Header.Set("X-Signed", "yes")
		resp, err := x.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	if code := ask("/channels/slack", "bot.example", "a=%20b"); code != 200 {
		t.Fatalf("a request is answered with %d", code)
	}
	if s := <-got; s != "yes a=%20b" {
		t.Errorf("it came as %q", s)
	}
	for _, step := range []struct {
		path, host, body string
		want             int
	}{
		{"/channels/telegram", "bot.example", "x", 404},
		{"/channels/slack", "evil.example", "x", 403},
		{"/v1/messages", "bot.example", "{}", 403},
		{"/channels/slack", "bot.example", strings.Repeat("x", 1<<20), 200},
		{"/channels/slack", "bot.example", strings.Repeat("x", 1<<20+1), 413},
	} {
		if code := ask(step.path, step.host, step.body); code != step.want {
			t.Errorf("%s of %s with %d bytes: %d, want %d", step.path, step.host, len(step.body), code, step.want)
		}
	}
}

// A watchedBody records how large the buffer was at the first read.
type watchedBody struct{ room int }

func (b *watchedBody) Read(p []byte) (int, error) {
	if b.room == 0 {
		b.room = len(p)
	}
	return 0, io.ErrUnexpectedEOF
}

// A guardedReceiver answers only requests with a header that it knows.
type guardedReceiver struct{ read int }

func (*guardedReceiver) Admits(h http.Header) bool { return h.Get("X-Secret") == "right" }

func (g *guardedReceiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	g.read += len(body)
	if !g.Admits(r.Header) {
		w.WriteHeader(http.StatusUnauthorized)
	}
}

// The server allocates no memory for a body just because a request announces its length, and doesn't read the body if
// the header alone shows that the caller is refused.
func TestNobodyIsGivenRoomForAPromise(t *testing.T) {
	receiver := new(guardedReceiver)
	x := newRig(t, func(x *rig) {
		x.cfg.Access.Public = func() []string { return []string{"bot.example"} }
		x.cfg.Receivers = func() map[string]http.Handler {
			return map[string]http.Handler{"telegram": receiver, "slack": http.HandlerFunc(receiver.ServeHTTP)}
		}
	})
	ask := func(path, secret string) (code, room int) {
		body := new(watchedBody)
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, body)
		req.Host, req.ContentLength = "bot.example", 1<<20
		req.Header.Set("X-Secret", secret)
		w := httptest.NewRecorder()
		x.ServeHTTP(w, req)
		return w.Code, body.room
	}
	if code, room := ask("/channels/slack", ""); code != http.StatusBadRequest || room == 0 || room > 128<<10 {
		t.Errorf("a body that does not come: %d, with room for %d bytes", code, room)
	}
	if code, room := ask("/channels/telegram", "right"); code != http.StatusBadRequest || room == 0 || room > 128<<10 {
		t.Errorf("with the secret: %d, with room for %d bytes", code, room)
	}
	if code, room := ask("/channels/telegram", "wrong"); code != http.StatusUnauthorized || room != 0 || receiver.read != 0 {
		t.Errorf("without the secret: %d, with room for %d bytes, of which %d were read", code, room, receiver.read)
	}
}
