package tools

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"parley/cmd/parley/parleytest"
	"parley/tools/mcp/signin/signintest"
)

// A guarded is a world with a service that requires a sign-in, and with a server that uses the service.
type guarded struct {
	*parleytest.HTTPWorld
	auth *signintest.Server
	c    *changing
}

func newGuarded(t *testing.T, more string) *guarded {
	t.Helper()
	c := newChanging(t)
	auth, web := signintest.New(c.handler)
	t.Cleanup(web.Close)
	t.Cleanup(web.CloseClientConnections)
	settings := fmt.Sprintf("\n[mcp.web]\nurl = %q\nagents = [\"main\"]\n", auth.URL+"/mcp")
	w := parleytest.New(t, swapModel, settings)
	o := parleytest.ListenHTTP(w)
	text, err := os.ReadFile(w.File)
	parleytest.Must(t, err)
	parleytest.Must(t, os.WriteFile(w.File, []byte(strings.Replace(string(text), "listen = ", more+"listen = ", 1)), 0o600))
	return &guarded{o, auth, c}
}

// A signing is a running command that signs in.
type signing struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// login starts parley mcp login, waits until it has printed an address, and opens the address. It returns the command,
// and the address to which the browser is sent at the end.
func (g *guarded) login() (s *signing, ends *url.URL) {
	g.T.Helper()
	s = &signing{Cmd: g.Command("mcp", "login", "web")}
	in, err := s.StdinPipe()
	parleytest.Must(g.T, err)
	out, err := s.StdoutPipe()
	parleytest.Must(g.T, err)
	s.in, s.out, s.Stderr = in, bufio.NewReader(out), os.Stderr
	parleytest.Must(g.T, s.Start())
	g.T.Cleanup(func() { _ = s.Process.Kill() }) // it may have ended
	for {
		line, err := s.out.ReadString('\n')
		parleytest.Must(g.T, err)
		if strings.HasPrefix(line, "http") {
			ends, err = signintest.Browse(strings.TrimSpace(line))
			parleytest.Must(g.T, err)
			return s, ends
		}
	}
}

// done waits until a command has signed in.
func (g *guarded) done(s *signing) {
	g.T.Helper()
	rest, err := io.ReadAll(s.out)
	if waited := s.Wait(); err != nil || waited != nil || !strings.Contains(string(rest), "Signed in to web.") {
		g.T.Errorf("mcp login ended with %v, %v: %s", waited, err, rest)
	}
}

// come makes the browser's last request, to the server's public name, and returns the answer.
func (g *guarded) come(ends *url.URL) (status int, text string) {
	g.T.Helper()
	r, err := http.NewRequestWithContext(g.T.Context(), http.MethodGet, g.URL+ends.RequestURI(), nil)
	parleytest.Must(g.T, err)
	r.Host = ends.Host
	answer, err := g.Client.Do(r)
	parleytest.Must(g.T, err)
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	parleytest.Must(g.T, err)
	return answer.StatusCode, string(raw)
}

// An owner signs in with a browser, which is sent to the server's public address at the end. Then agents have the tools
// of the service. No log contains a token.
func TestSigningInToAnMCPServer(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, "public_url = \"https://bot.example.com\"\n")
	p := g.Up()
	parleytest.WaitFor(t, "it to be told that somebody has to sign in", func() bool {
		out, _, _ := g.Run("mcp", "list")
		return strings.Contains(out, "parley mcp login web")
	})
	command, ends := g.login()
	if !strings.HasPrefix(ends.String(), "https://bot.example.com/mcp/web/callback?") {
		t.Errorf("the browser ends at %s", ends)
	}
	if status, text := g.come(ends); status != http.StatusOK || !strings.Contains(text, "signed in to web") {
		t.Errorf("the browser is told %d %s", status, text)
	}
	g.done(command)
	if status, text := g.come(ends); status != http.StatusUnprocessableEntity || !strings.Contains(text, "already used") {
		t.Errorf("the second time the browser is told %d %s", status, text)
	}
	if status, text := g.come(&url.URL{Host: "bot.example.com", Path: "/mcp/client.json"}); status != http.StatusOK || !strings.Contains(text, `"client_id":"https://bot.example.com/mcp/client.json"`) {
		t.Errorf("who asks who asks is told %d %s", status, text)
	}
	if status, _ := g.come(&url.URL{Host: "bot.example.com", Path: "/v1/mcp"}); status != http.StatusForbidden {
		t.Errorf("by its public name the rest of it answers %d", status)
	}
	if out, errs, code := g.Run("mcp", "test", "web"); code != parleytest.ExitDone || !strings.Contains(out, "Tools listed: 2;") {
		t.Errorf("mcp test ended with %d: %s%s", code, out, errs)
	}
	g.Telegram.Say(2, 2, "again")
	parleytest.Wants(t, g.WaitSaid(2, 1)[0], "next: web__hold web__old")
	p.Stop()
	for _, secret := range g.auth.Secrets() {
		if strings.Contains(p.Stderr.String(), secret) {
			t.Error("a token is in the log")
		}
		for _, file := range parleytest.FilesWith(t, g.Home, secret) {
			if name := filepath.Base(file); !strings.HasPrefix(name, "sessions.db") {
				t.Errorf("a token is in %s", name)
			}
		}
	}
}

// If the browser cannot open the last page, the person pastes its address. This also works without a running server,
// and a server that starts later has the token.
func TestPastingWhereTheBrowserEnded(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, "")
	command, ends := g.login() // without a server
	_, err := fmt.Fprintln(command.in, ends)
	parleytest.Must(t, err)
	g.done(command)
	p := g.Up()
	parleytest.WaitFor(t, "the tools to be known", func() bool {
		out, _, _ := g.Run("mcp", "list")
		return strings.Contains(out, "hold")
	})
	command, ends = g.login()
	if !strings.HasPrefix(ends.String(), g.URL+"/mcp/web/callback?") {
		t.Errorf("the browser ends at %s", ends)
	}
	if _, errs, code := g.Run("mcp", "login", "web", "https://example.com/"); code != parleytest.ExitFailed || !strings.Contains(errs, "state=") {
		t.Errorf("another address ended with %d: %s", code, errs)
	}
	if out, errs, code := g.Run("mcp", "login", "web", ends.String()); code != parleytest.ExitDone || !strings.Contains(out, "Signed in") {
		t.Errorf("the address ended with %d: %s%s", code, out, errs)
	}
	g.done(command) // the command notices that the sign-in is done
	p.Stop()
}
