package notifications

import (
	"bufio"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/cmd/parley/data/home"
	"parley/cmd/parley/parleytest"
)

// These tests send the server requests that it must refuse.

func TestWhatIsRefusedOverHTTP(t *testing.T) {
	t.Parallel()
	o := newOps(t, "", unpaced)
	p := o.Up()
	ci, alerts := parleytest.Bearer(opsSecrets["ci"]), parleytest.Bearer(opsSecrets["alertmanager"])
	const toCI = `{"to": "ci", "text": "hello"}`
	with := func(headers []string, more ...string) []string {
		return append(append([]string{}, headers...), more...)
	}
	for _, c := range []struct {
		name, method, path, body string
		headers                  []string
		status                   int
		code, message            string
	}{
		{"no token", "POST", "/v1/messages", toCI, nil, 401, "unauthorized", "Authorization: Bearer"},
		{"wrong token", "POST", "/v1/messages", toCI, parleytest.Bearer("nonsense"), 401, "unauthorized", "doesn't know this token"},
		{"a webhook's token", "POST", "/v1/messages", toCI, alerts, 401, "unauthorized", "doesn't know this token"},
		{"no token at a webhook", "POST", "/webhooks/alertmanager", `{}`, nil, 401, "unauthorized", "token"},
		{"wrong token at a webhook", "POST", "/webhooks/alertmanager", `{}`, ci, 401, "unauthorized", "token"},
		{"GitHub without a signature", "POST", "/webhooks/github", `{}`, ci, 401, "unauthorized", "X-Hub-Signature-256"},
		{"another target", "POST", "/v1/messages", `{"to": "oncall", "text": "x"}`, ci, 403, "forbidden", "oncall"},
		{"an address instead of the target", "POST", "/v1/messages", `{"to": "slack:C0BUILDS", "text": "x"}`, ci, 403, "forbidden", ""},
		{"a target that there is not, beyond the scope", "POST", "/v1/messages", `{"to": "nosuch", "text": "x"}`, ci, 403, "forbidden", "nosuch"},
		{"the agent, beyond the scope", "POST", "/v1/messages", `{"to": "agent", "text": "x"}`, ci, 403, "forbidden", "agent"},
		{"metrics, beyond the scope", "GET", "/metrics", "", ci, 403, "forbidden", "scope"},
		{"the agent without a model", "POST", "/v1/messages", `{"to": "agent", "text": "x"}`, o.OwnerHeader(), 422, "no_model", "[model]"},
		{"an unknown target", "POST", "/v1/messages", `{"to": "oncal", "text": "x"}`, o.OwnerHeader(), 422, "", `did you mean "oncall"?`},
		{"an unknown channel", "POST", "/v1/messages", `{"to": "slak:C1", "text": "x"}`, o.OwnerHeader(), 422, "", `did you mean "slack"?`},
		{"an unknown field", "POST", "/v1/messages", `{"to": "ci", "txt": "x"}`, ci, 422, "unknown_field", `did you mean "text"?`},
		{"no text", "POST", "/v1/messages", `{"to": "ci"}`, ci, 422, "empty", "text"},
		{"no JSON", "POST", "/v1/messages", `{"to": "ci"`, ci, 400, "bad_json", "isn't JSON"},
		{"a wrong type", "POST", "/v1/messages", `{"to": "ci", "text": 7}`, ci, 400, "bad_type", "text"},
		{"no JSON at a webhook", "POST", "/webhooks/alertmanager", `{"alerts":`, alerts, 400, "bad_request", "JSON"},
		{"no alerts", "POST", "/webhooks/alertmanager", `{"status": "firing"}`, alerts, 400, "bad_request", "alerts"},
		{"not JSON by its type", "POST", "/v1/messages", toCI, with(ci, "Content-Type", "text/plain"), 415, "not_json", "application/json"},
		{"too long", "POST", "/v1/messages", `{"to": "ci", "text": "` + strings.Repeat("x", 2<<20) + `"}`, ci, 413, "too_large", "1048576"},
		{"too long at a webhook", "POST", "/webhooks/alertmanager", strings.Repeat(" ", 2<<20), alerts, 413, "too_large", "1048576"},
		{"foreign Host", "POST", "/v1/messages", toCI, with(ci, "Host", "evil.example.net"), 403, "unknown_host", "hosts"},
		{"foreign Host at a webhook", "POST", "/webhooks/alertmanager", `{}`, with(alerts, "Host", "evil.example.net"), 403, "unknown_host", "hosts"},
		{"foreign Origin", "POST", "/v1/messages", toCI, with(ci, "Origin", "https://evil.example.net"), 403, "foreign_origin", "origin"},
		{"wrong method", "DELETE", "/v1/messages", "", o.OwnerHeader(), 405, "method_not_allowed", "POST"},
		{"wrong path", "GET", "/v2/messages", "", o.OwnerHeader(), 404, "not_found", ""},
		{"no such webhook", "POST", "/webhooks/nosuch", `{}`, ci, 404, "not_found", "[webhooks]"},
		{"no such message", "GET", "/v1/messages/m_NONE", "", ci, 404, "not_found", ""},
	} {
		got := o.Ask(c.method, c.path, c.body, c.headers...)
		if got.Status != c.status || got.Code() == "" || c.code != "" && got.Code() != c.code || !strings.Contains(unquoted(got.Body), c.message) {
			t.Errorf("%s: answered %d %s, want %d %s and %q", c.name, got.Status, got.Body, c.status, c.code, c.message)
		}
		if c.status == http.StatusUnauthorized && got.Header.Get("WWW-Authenticate") == "" || c.status == http.StatusMethodNotAllowed && got.Header.Get("Allow") == "" {
			t.Errorf("%s: a header is missing: %v", c.name, got.Header)
		}
	}
	// A request with the server's own name as its host and origin is accepted.
	if got := o.Ask("POST", "/v1/messages", toCI, with(ci, "Host", "parley.internal", "Origin", "http://parley.internal")...); got.Status != http.StatusAccepted {
		t.Errorf("under its own name: %+v", got)
	}
	parleytest.WaitFor(t, "the one message", func() bool { return o.slack.Sends() >= 1 })
	p.Stop()
	if n := o.sends(); n != 1 {
		t.Errorf("%d messages were sent, want the one that was allowed", n)
	}
	for _, secret := range opsSecrets {
		if strings.Contains(p.Stderr.String(), secret) {
			t.Errorf("the log shows the secret %q", secret)
		}
	}
}

func unquoted(body string) string { return strings.ReplaceAll(body, `\"`, `"`) }

// The server does not wait for a request body that does not arrive.
func TestSlowBodies(t *testing.T) {
	t.Parallel()
	o := newOps(t, "", unpaced)
	p := o.Up()
	ask := func(path, secret string) error {
		conn, err := net.Dial("tcp", strings.TrimPrefix(o.URL, "http://"))
		if err != nil {
			return err
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(parleytest.Patience)); err != nil {
			return err
		}
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", path, secret)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusRequestTimeout {
			return fmt.Errorf("%s answered %s", path, res.Status)
		}
		return nil
	}
	errs := make(chan error, 2)
	go func() { errs <- ask("/v1/messages", opsSecrets["ci"]) }()
	go func() { errs <- ask("/webhooks/alertmanager", opsSecrets["alertmanager"]) }()
	for range 2 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	p.Kill()
	if n := o.sends(); n != 0 {
		t.Errorf("%d messages were sent", n)
	}
}

// The server refuses a post that it cannot store, and accepts it once when storage works again.
func TestWhatIsNotDurableIsRefused(t *testing.T) {
	t.Parallel()
	o := newOps(t, "", unpaced)
	p := o.Up()
	began := time.Now()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(o.Home, home.StoreFile)+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("BEGIN IMMEDIATE"); err != nil { // like a disk that accepts no writes
		t.Fatal(err)
	}
	body := alertOf("DiskFull", "critical", "firing", began)
	answers := make(chan parleytest.Answer, 2)
	for _, post := range [][]string{{"/webhooks/alertmanager", body, "alertmanager"}, {"/v1/messages", `{"to": "ci", "text": "hello"}`, "ci"}} {
		go func() {
			got, err := o.TryAsk("POST", post[0], post[1], parleytest.Bearer(opsSecrets[post[2]])...)
			if err != nil {
				t.Error(err)
			}
			answers <- got
		}()
	}
	for range 2 {
		if got := <-answers; got.Status != http.StatusServiceUnavailable || got.Header.Get("Retry-After") == "" || got.Code() == "" {
			t.Errorf("what is not durable was answered %+v", got)
		}
	}
	if n := o.sends(); n != 0 {
		t.Errorf("%d messages were sent", n)
	}
	if _, err := db.Exec("ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if got := o.alert(body); got.Status != http.StatusAccepted {
		t.Errorf("afterwards it was answered %+v", got)
	}
	o.everywhere(1)
	p.Stop()
	if n := o.sends(); n != 3 {
		t.Errorf("%d messages were sent, want one on each platform", n)
	}
}

// If a mailbox is full, the server answers Alertmanager with an error that makes it try again later.
func TestFullMailboxesAreRefused(t *testing.T) {
	t.Parallel()
	o := newOps(t, "[limits]\noutbound = 3\n", unpaced)
	_ = o.discord.Close()
	p := o.Up()
	began := time.Now()
	var refused string
	taken := 0
	for n := 0; refused == "" && n < 10; n++ {
		body := alertOf(fmt.Sprintf("s00n%05d", n), "critical", "firing", began)
		switch got := o.alert(body); got.Status {
		case http.StatusAccepted:
			taken++
		case http.StatusServiceUnavailable:
			refused = body
			if got.Header.Get("Retry-After") == "" || !strings.Contains(got.Body, "ops-discord") {
				t.Errorf("it was answered %+v", got)
			}
		default:
			t.Fatalf("it was answered %+v", got)
		}
	}
	if refused == "" || taken != 3 {
		t.Fatalf("%d alerts were taken with three places", taken)
	}
	if got := o.Ask("POST", "/v1/messages", `{"to": "ops-discord:1122", "text": "x"}`, o.OwnerHeader()...); got.Status != http.StatusTooManyRequests || got.Header.Get("Retry-After") == "" {
		t.Errorf("a program was answered %+v", got)
	}
	if _, err := o.discord.Start(o.at["channels.ops-discord"]); err != nil {
		t.Fatal(err)
	}
	parleytest.WaitFor(t, "room", func() bool { return o.alert(refused).Status == http.StatusAccepted })
	o.everywhere(4)
	p.Stop()
	s := &barrage{senders: 1, each: 4}
	s.check(t, "Slack", parleytest.SlackTexts(o.slack.Sent(alertsSlack)), 0)
	s.check(t, "Discord", parleytest.DiscordTexts(o.discord.Sent(alertsDiscord)), 0)
	s.check(t, "Telegram", parleytest.Texts(o.Telegram.Sent(alertsTelegram)), 0)
}

func TestPortTaken(t *testing.T) {
	t.Parallel()
	o := newOps(t, "", unpaced)
	l, err := net.Listen("tcp", strings.TrimPrefix(o.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, errs, code := o.Run("serve")
	if code != parleytest.ExitConfig || !strings.Contains(errs, "http.listen") || !strings.Contains(errs, "parley.toml:") || !strings.Contains(errs, "in use") {
		t.Errorf("exit %d, %q", code, errs)
	}
}

// When SIGHUP removes a token, its open streams end.
func TestATokenThatIsTakenBackLosesItsStream(t *testing.T) {
	t.Parallel()
	o := newOps(t, "", unpaced+"\n")
	text, err := os.ReadFile(o.File)
	if err != nil {
		t.Fatal(err)
	}
	write := func(more string) {
		t.Helper()
		if err := os.WriteFile(o.File, append(text, more...), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const secret = "a-token-that-is-taken-back"
	write("\n[tokens.watcher]\ntoken = \"" + secret + "\"\nmay = [\"read\"]\n")
	p := o.Up()
	o.Ready(t)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, o.URL+"/v1/sessions/main:web:ci/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	resp, err := o.Client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status)
	}
	write("")
	if err := p.Cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the stream ends with %v", err)
	}
}
