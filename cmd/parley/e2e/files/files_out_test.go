package files

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/channels/telegram/telegramtest"
	"parley/cmd/parley/parleytest"
	"parley/sessions/outgoing"
	"parley/sessions/sqldb/sqldbtest"
)

// sendsFiles plays a model that writes a file, sends it to chat 3 together with a picture, changes the file, and answers
// with the results.
func sendsFiles(r agenttest.Request) agenttest.Response {
	if r.Said() != "send them" {
		return agenttest.Reply("ok")
	}
	switch r.Rounds() {
	case 0:
		return agenttest.Calls(agenttest.ToolCall{Name: "write_file", Args: `{"path":"report.txt","content":"as it was sent"}`})
	case 1:
		return agenttest.Calls(agenttest.ToolCall{Name: "message", Args: `{"channel":"telegram","chat_id":"3","content":"the report","files":["report.txt","charts/a.png"]}`})
	case 2:
		return agenttest.Calls(agenttest.ToolCall{Name: "write_file", Args: `{"path":"report.txt","content":"changed later"}`})
	}
	return agenttest.Reply("came of it: " + strings.Join(r.Results(), " "))
}

// aChart writes a picture to the workspace of a person's chat, and returns it.
func aChart(t *testing.T, w *parleytest.World, chat int) []byte {
	t.Helper()
	var b bytes.Buffer
	parleytest.Must(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, 40, 30))))
	dir := filepath.Join(w.Home, "workspaces", "main", fmt.Sprint("telegram:", chat), "charts")
	parleytest.Must(t, os.MkdirAll(dir, 0o700))
	parleytest.Must(t, os.WriteFile(filepath.Join(dir, "a.png"), b.Bytes(), 0o600))
	return b.Bytes()
}

// wantFiles checks that a chat has the text, the file and the picture, in this order. Each may be there again as often
// as the book has interrupted sends.
func wantFiles(t *testing.T, w *parleytest.World, sent []telegramtest.Message, chart []byte) {
	t.Helper()
	var got []string
	again := 0
	for _, m := range sent {
		one := "text"
		if m.File != nil {
			one = m.File.Name
			if m.File.Photo && !bytes.Equal(m.File.Data, chart) || !m.File.Photo && string(m.File.Data) != "as it was sent" {
				t.Errorf("%s arrived otherwise: %d bytes", one, m.File.Size)
			}
		}
		if len(got) > 0 && got[len(got)-1] == one {
			again++
			continue
		}
		got = append(got, one)
	}
	if strings.Join(got, " ") != "text report.txt a.png" {
		t.Errorf("arrived: %v", got)
	}
	if cut := w.InterruptedSends(); again > cut {
		t.Errorf("%d arrived again, and %d sends were cut off", again, cut)
	}
	if left, err := filepath.Glob(filepath.Join(w.Home, "workspaces", outgoing.Folder, "*")); err != nil || len(left) > 0 {
		t.Errorf("kept: %v, %v", left, err)
	}
}

// The message tool sends files as they were when it was called. Each is sent once, even if the process is killed at any
// step.
func TestMessageSendsFiles(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"alive", "files:kept", "c5:before", "c5/2", "send:begun", "send:sent/2", "send:sent/3", "send:marked/2", "send:released"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			w := parleytest.New(t, sendsFiles, "\n[agents.main]\nmay_message = [\"telegram:3\"]\n")
			chart := aChart(t, w, 2)
			w.Telegram.Say(2, 2, "send them")
			if at != "alive" {
				w.Serve("PARLEY_KILL_AT=" + at).WaitKilled()
			}
			p := w.Serve()
			w.WaitSaid(3, 3)
			if said := w.WaitSaid(2, 1); !strings.Contains(said[0], `"files":2`) {
				t.Errorf("the model was told %q", said)
			}
			p.Stop()
			wantFiles(t, w, w.Telegram.Sent(3), chart)
			if text := w.Telegram.Sent(3)[0].Text; !strings.Contains(text, "the report") || !strings.Contains(text, "telegram:2") {
				t.Errorf("the text is %q", text)
			}
		})
	}
}

// If one of the files cannot be sent, the model gets an error and nothing is sent.
func TestMessageRefusesFiles(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, func(r agenttest.Request) agenttest.Response {
		if r.Rounds() == 0 {
			return agenttest.Calls(agenttest.ToolCall{Name: "message", Args: fmt.Sprintf(`{"channel":"telegram","chat_id":"2","content":"look","files":[%q]}`, r.Said())})
		}
		return agenttest.Reply(strings.Join(r.Results(), " "))
	}, "\n[tools]\ndeny = [\"read_file(secret*)\"]\n")
	text, err := os.ReadFile(w.File)
	parleytest.Must(t, err)
	parleytest.Must(t, os.WriteFile(w.File, bytes.Replace(text, []byte("introduce ="), []byte("files_mb = 1\nintroduce ="), 1), 0o600))
	dir := filepath.Join(w.Home, "workspaces", "main", "telegram:2")
	parleytest.Must(t, os.MkdirAll(dir, 0o700))
	parleytest.Must(t, os.WriteFile(filepath.Join(dir, "large"), make([]byte, 1<<20+1), 0o600))
	parleytest.Must(t, os.WriteFile(filepath.Join(dir, "secret.txt"), []byte("x"), 0o600))
	parleytest.Must(t, os.WriteFile(filepath.Join(dir, "empty"), nil, 0o600))
	p := w.Serve()
	for i, c := range []struct{ path, want string }{
		{"missing.txt", "file_not_found"},
		{"../telegram:3/x", "invalid_path"},
		{"large", "at most 1048576"},
		{"empty", "nothing to send"},
		{"secret.txt", "permission_denied"},
	} {
		w.Telegram.Say(2, 2, c.path)
		if said := w.WaitSaid(2, i+1); !strings.Contains(said[i], c.want) {
			t.Errorf("%s: %q, want %q", c.path, said[i], c.want)
		}
	}
	p.Stop()
}

// The files that an answer shows are sent after the answer, each once, even if the process is killed at any step. The
// person and the model are told which files could not be sent.
func TestAnswerWithFiles(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"alive", "c3:before", "c6", "c7:published", "settled", "send:sent/2", "send:sent/3", "send:released"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			told := make(chan string, 10)
			w := parleytest.New(t, func(r agenttest.Request) agenttest.Response {
				if r.Said() != "show me" {
					told <- string(r.Body)
					return agenttest.Reply("as `![x](a.png)`")
				}
				if r.Rounds() == 0 {
					return agenttest.Calls(agenttest.ToolCall{Name: "write_file", Args: `{"path":"report.txt","content":"as it was sent"}`})
				}
				return agenttest.Reply("Here is ![the report](report.txt), ![a chart](charts/a.png), and ![nothing](missing.png) of the ![web](https://example.org/x.png).")
			}, "")
			chart := aChart(t, w, 2)
			w.Telegram.Say(2, 2, "show me")
			if at != "alive" {
				w.Serve("PARLEY_KILL_AT=" + at).WaitKilled()
			}
			p := w.Serve()
			first := w.WaitSaid(2, 3)[0]
			for _, want := range []string{"Here is the report (report.txt), a chart (charts/a.png), and nothing (missing.png) of the web", "I couldn't send the file missing.png"} {
				if !strings.Contains(first, want) {
					t.Errorf("the answer is %q, which lacks %q", first, want)
				}
			}
			p.Stop()
			wantFiles(t, w, w.Telegram.Sent(2), chart)
			p = w.Serve()
			before := len(w.Telegram.Sent(2))
			w.Telegram.Say(2, 2, "and now?")
			w.WaitSaid(2, before+1)
			p.Stop()
			if request := <-told; !strings.Contains(request, "Your answer went without a file that it shows") {
				t.Errorf("the model was told %s", request)
			}
		})
	}
}

// In a fleet, a gateway sends files from a directory that it shares with the workers. If they share none, the text
// arrives, the chat is told which files are missing, and the gateway logs what is wrong.
func TestGatewaysNeedTheWorkspaces(t *testing.T) {
	t.Parallel()
	redis := os.Getenv("PARLEY_TEST_REDIS_URL")
	if redis == "" {
		t.Skip("there is no PARLEY_TEST_REDIS_URL: run it as `.ci/servers go test …`, or with make test")
	}
	for _, shared := range []bool{true, false} {
		t.Run(fmt.Sprint("shared ", shared), func(t *testing.T) {
			t.Parallel()
			more := fmt.Sprintf("[bus]\nurl = %q\nprefix = %q\n[store]\nurl = %q\n", redis, "test-"+rand.Text(), sqldbtest.New(t))
			if shared {
				more += fmt.Sprintf("[workspace]\nroot = %q\n", t.TempDir())
			}
			worker := parleytest.New(t, func(r agenttest.Request) agenttest.Response {
				if r.Rounds() == 0 {
					return agenttest.Calls(agenttest.ToolCall{Name: "write_file", Args: `{"path":"report.txt","content":"as it was sent"}`})
				}
				return agenttest.Reply("![the report](report.txt)")
			}, more)
			gateway := *worker
			gateway.Home = t.TempDir()
			var said parleytest.SyncBuffer
			for _, of := range []struct {
				w    *parleytest.World
				role string
			}{{worker, "worker"}, {&gateway, "gateway"}} {
				cmd := of.w.Command("serve", "--role", of.role)
				cmd.Stderr = &said
				parleytest.Must(t, cmd.Start())
				t.Cleanup(func() {
					_ = cmd.Process.Kill() // it may have ended
					_ = cmd.Wait()
				})
			}
			worker.Telegram.Say(2, 2, "show me")
			worker.WaitSaid(2, 2)
			sent := worker.Telegram.Sent(2)
			if !strings.Contains(sent[0].Text, "the report") {
				t.Errorf("the answer is %q", sent[0].Text)
			}
			if shared {
				if f := sent[1].File; f == nil || f.Name != "report.txt" || string(f.Data) != "as it was sent" {
					t.Errorf("the file is %+v", sent[1])
				}
				return
			}
			if !strings.Contains(sent[1].Text, "couldn't send the file") {
				t.Errorf("the chat was told %q", sent[1].Text)
			}
			for _, want := range []string{"set workspace.root to the directory that all share", "a file that a message names is not there"} {
				if !strings.Contains(said.String(), want) {
					t.Errorf("nobody says %q", want)
				}
			}
		})
	}
}

// A backup contains the files that wait to be sent, and a server on the restored home sends them.
func TestBackupHasFilesThatWait(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, sendsFiles, "\n[agents.main]\nmay_message = [\"telegram:3\"]\n")
	chart := aChart(t, w, 2)
	w.Telegram.Say(2, 2, "send them")
	w.Serve("PARLEY_KILL_AT=send:begun").WaitKilled()
	file := filepath.Join(t.TempDir(), "backup")
	if _, errs, code := w.Run("backup", file); code != 0 {
		t.Fatalf("backup: %d %s", code, errs)
	}
	w.Home = filepath.Join(t.TempDir(), "restored")
	if _, errs, code := w.Run("restore", file); code != 0 {
		t.Fatalf("restore: %d %s", code, errs)
	}
	p := w.Serve()
	w.WaitSaid(3, 3)
	w.WaitSaid(2, 1)
	p.Stop()
	wantFiles(t, w, w.Telegram.Sent(3), chart)
}

// A terminal shows the path of a file that an answer shows, and shows the answer once.
func TestTerminalNamesFiles(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, func(r agenttest.Request) agenttest.Response {
		if r.Rounds() == 0 {
			return agenttest.Calls(agenttest.ToolCall{Name: "write_file", Args: `{"path":"charts/report.txt","content":"as it was sent"}`})
		}
		return agenttest.Reply("Here is ![the report](charts/report.txt).")
	}, "")
	out, errs, code := w.Run("chat", "-m", "show me")
	if code != 0 || strings.Count(out, "the report") != 1 || !strings.Contains(out, "charts/report.txt") {
		t.Errorf("chat ended with %d and said %q and %q", code, out, errs)
	}
}
