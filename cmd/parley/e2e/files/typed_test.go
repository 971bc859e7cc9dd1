package files

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/bus"
	"parley/cmd/parley/parleytest"
	"parley/cmd/parley/terminal/client"
)

// The demo model reads a file that a person sends, so that a newcomer's first file gets an answer.
func TestTheDemoReadsASentFile(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, parleytest.Beholder, "")
	parleytest.Must(t, os.WriteFile(w.File, []byte("[http]\nlisten = \"\"\n"), 0o600))
	notes := filepath.Join(t.TempDir(), "notes.txt")
	parleytest.Must(t, os.WriteFile(notes, []byte("what I noted"), 0o600))
	if out, errs, code := w.Run("chat", "-m", "read @"+notes); code != 0 || !strings.Contains(out, "what I noted") {
		t.Errorf("%d %q %q", code, out, errs)
	}
}

// A person at a terminal can send files and pictures, and the agent gets them as it gets those of a platform. This
// holds whether the terminal's process or another one serves the home.
func TestATerminalSendsFiles(t *testing.T) {
	t.Parallel()
	for _, serves := range []bool{false, true} {
		w := parleytest.New(t, parleytest.Beholder, "")
		dir := t.TempDir()
		text, picture := filepath.Join(dir, "my notes.txt"), filepath.Join(dir, "red.png")
		parleytest.Must(t, os.WriteFile(text, []byte("what I noted"), 0o600))
		parleytest.Must(t, os.WriteFile(picture, parleytest.Picture(t, 40), 0o600))
		if serves {
			p := w.Serve()
			p.WaitServing()
			defer p.Stop()
		}
		out, errs, code := w.Run("chat", "-m", `which colour? @`+picture+` and @"`+text+`"`)
		for _, want := range []string{"which colour?", "red 40", `kind="picture"`, `type="image/png"`, "-my_notes.txt"} {
			if !strings.Contains(out, want) || code != 0 {
				t.Errorf("served %t: %d %q %q, without %q", serves, code, out, errs, want)
			}
		}
		found, err := filepath.Glob(filepath.Join(w.Home, "workspaces", "main", "*", "attachments", "*-my_notes.txt"))
		parleytest.Must(t, err)
		if len(found) != 1 {
			t.Fatalf("the workspace has %q", found)
		}
		if raw, err := os.ReadFile(found[0]); err != nil || string(raw) != "what I noted" {
			t.Errorf("the file holds %q, %v", raw, err)
		}
		// The next message removes the earlier upload, because a fetched file is not kept twice.
		if out, errs, code := w.Run("chat", "-m", "again @"+picture); code != 0 || !strings.Contains(out, "red 40") {
			t.Errorf("again: %d %q %q", code, out, errs)
		}
		if waiting, err := filepath.Glob(filepath.Join(w.Home, "workspaces", "~outgoing", "*", "*")); err != nil || len(waiting) != 1 {
			t.Errorf("%q wait, %v", waiting, err)
		}
		if out, errs, code := w.Run("chat", "-m", "see @"+dir); code != 1 || !strings.Contains(errs, "is a folder") {
			t.Errorf("a folder: %d %q %q", code, out, errs)
		}
	}
}

// oneFileOnce checks that a session has one message with one file, and that its workspace contains the file once.
func oneFileOnce(t *testing.T, w *parleytest.World, session, name, content string) {
	t.Helper()
	out, errs, code := w.Run("--json", "sessions", session)
	if code != 0 || strings.Count(out, `"kind":"user"`) != 1 || strings.Count(out, `"kind":"attached"`) != 1 || strings.Count(out, `"kind":"turn_done"`) != 1 {
		t.Errorf("the log of %s is %q, %q", session, out, errs)
	}
	found, err := filepath.Glob(filepath.Join(w.Home, "workspaces", "main", "*", "attachments", "*-"+name))
	parleytest.Must(t, err)
	if len(found) != 1 {
		t.Fatalf("the workspace has %q", found)
	}
	if raw, err := os.ReadFile(found[0]); err != nil || string(raw) != content {
		t.Errorf("the file holds %q, %v", raw, err)
	}
}

// keptOf returns the uploaded files that wait for their messages.
func keptOf(t *testing.T, w *parleytest.World) []string {
	t.Helper()
	kept, err := filepath.Glob(filepath.Join(w.Home, "workspaces", "~outgoing", "*", "*"))
	parleytest.Must(t, err)
	return kept
}

// If a server is killed after it got a file and before it got the message, it keeps the file. The terminal sends the
// message again, and the agent gets both once.
func TestAFileOutlivesServeBeforeItsMessage(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"upload:kept", "c1:before", "fetch:before", "fetched"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			w := parleytest.New(t, parleytest.Beholder, "")
			notes := filepath.Join(t.TempDir(), "notes.txt")
			parleytest.Must(t, os.WriteFile(notes, []byte("what I noted"), 0o600))
			p := w.Serve("PARLEY_KILL_AT=" + at)
			p.WaitServing()
			type result struct {
				out, errs string
				code      int
			}
			done := make(chan result, 1)
			go func() {
				out, errs, code := w.Run("chat", "-m", "read @"+notes)
				done <- result{out, errs, code}
			}()
			p.WaitKilled()
			if kept := keptOf(t, w); len(kept) != 1 {
				t.Errorf("after the kill there wait %q", kept)
			}
			w.Serve()
			if got := <-done; got.code != 0 || strings.Count(got.out, "read") != 1 || !strings.Contains(got.out, "-notes.txt") {
				t.Errorf("%+v", got)
			}
			oneFileOnce(t, w, "main:console:default", "notes.txt", "what I noted")
			if kept := keptOf(t, w); len(kept) > 1 {
				t.Errorf("there wait %q", kept)
			}
		})
	}
}

// withToken is an HTTP transport that adds a token to each request.
type withToken string

func (token withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(token))
	return http.DefaultTransport.RoundTrip(r)
}

// A client can send a file over the network with a token, even if the server is killed between the file and its
// message. A token without the right to send cannot.
func TestAFileComesOverTheNetwork(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"unharmed", "upload:kept"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			const token, other = "a-token-of-a-team", "a-token-of-others"
			w := parleytest.New(t, parleytest.Beholder, "[tokens.team]\ntoken = \""+token+"\"\nmay = [\"agent\"]\n[tokens.ops]\ntoken = \""+other+"\"\nmay = [\"send\", \"read\"]\n")
			o := parleytest.ListenHTTP(w)
			notes := filepath.Join(t.TempDir(), "notes.txt")
			parleytest.Must(t, os.WriteFile(notes, []byte("what I noted"), 0o600))
			const session = "main:web:team:work"
			p := o.Up("PARLEY_KILL_AT=" + at)
			// These requests lack the right to send, or send something other than a file.
			body := `{"to": "agent", "text": "read", "session": "work", "files": [{"name": "notes.txt", "data": "` + base64.StdEncoding.EncodeToString([]byte("x")) + `"}]}`
			if got := o.Ask("POST", "/v1/messages", body, parleytest.Bearer(other)...); got.Status != http.StatusForbidden {
				t.Errorf("a token that may not: %+v", got)
			}
			if got := o.Ask("POST", "/v1/messages", body); got.Status != http.StatusUnauthorized {
				t.Errorf("without a token: %+v", got)
			}
			if kept := keptOf(t, w); len(kept) != 0 {
				t.Errorf("of those who may not there wait %q", kept)
			}
			c := client.NewConversation(&client.Client{Base: o.URL, HTTP: &http.Client{Transport: withToken(token)}}, session, "work")
			in := bus.Inbound{ID: "typed-1", Text: "read it", Attachments: []bus.Attachment{{Name: "notes.txt", Ref: notes, Size: int64(len("what I noted"))}}}
			err := c.Say(t.Context(), in)
			if at != "unharmed" {
				if err == nil {
					t.Error("the server was killed, and the message is accepted")
				}
				p.WaitKilled()
				if kept := keptOf(t, w); len(kept) != 1 {
					t.Errorf("after the kill there wait %q", kept)
				}
				o.Up()
				err = c.Say(t.Context(), in) // as the terminal does
			}
			parleytest.Must(t, err)
			parleytest.Must(t, c.Say(t.Context(), in)) // a repeat, as after a lost answer
			parleytest.WaitFor(t, "the answer", func() bool {
				got := o.Ask("GET", "/v1/sessions/"+url.PathEscape(session), "", parleytest.Bearer(token)...)
				return json.Valid([]byte(got.Body)) && strings.Contains(got.Body, `"kind":"turn_done"`)
			})
			oneFileOnce(t, w, session, "notes.txt", "what I noted")
		})
	}
}
