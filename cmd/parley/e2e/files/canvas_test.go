package files

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/agent/agenttest"
	"parley/channels/slack/slacktest"
	"parley/cmd/parley/parleytest"
	"parley/sessions/outgoing"
	"parley/tools/canvas/canvastest"
)

// draws plays a model that draws a plot. If a busy machine does not finish the picture in time, the model tries again.
func draws(r agenttest.Request) agenttest.Response {
	results := r.Results()
	if r.Rounds() == 0 || r.Rounds() < 6 && strings.Contains(results[len(results)-1], "took longer") {
		return agenttest.Calls(agenttest.Call("canvas", `{"title":"Load of the week","plot":{"kind":"line","x":["Mon","Tue"],"series":[{"name":"a","values":[1,2]}]}}`))
	}
	return agenttest.Reply("That is the load: " + strings.Join(results, " "))
}

// withBrowser adds a browser to the settings of a world.
func withBrowser(t *testing.T, w *parleytest.World) {
	t.Helper()
	program := canvastest.Chromium(t)
	if _, err := exec.LookPath("bwrap"); err != nil {
		t.Skip("NOT TESTED: a browser runs in the sandbox bubblewrap only, which isn't here")
	}
	parleytest.New(t, draws, "").NeedsSandbox()
	text, err := os.ReadFile(w.File)
	parleytest.Must(t, err)
	parleytest.Must(t, os.WriteFile(w.File, fmt.Appendf(text, "\n[canvas]\nbrowser = %q\n", program), 0o600))
}

// Without a browser, a canvas is sent once with the answer, as a file, even if the process is killed at any step.
func TestACanvasGoesWithTheAnswer(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"alive", "c5:before", "c5", "c3:before/2", "c6", "send:sent/2", "send:released"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			w := parleytest.New(t, draws, "")
			w.Telegram.Say(2, 2, "draw it")
			if at != "alive" {
				w.Serve("PARLEY_KILL_AT=" + at).WaitKilled()
			}
			p := w.Serve()
			w.WaitSaid(2, 2)
			p.Stop()
			var got []string
			again := 0
			for _, m := range w.Telegram.Sent(2) {
				one := "text"
				if m.File != nil {
					one = m.File.Name
					if !bytes.Contains(m.File.Data, []byte("Load of the week</h1>")) || m.File.Photo {
						t.Errorf("%s is %q", one, m.File.Data)
					}
				}
				if slices.Contains(got, one) {
					again++
					continue
				}
				got = append(got, one)
			}
			if strings.Join(got, " ") != "text load_of_the_week.html" || again > w.InterruptedSends() {
				t.Errorf("arrived: %q; %d again, and %d sends were cut off", got, again, w.InterruptedSends())
			}
			if left, err := filepath.Glob(filepath.Join(w.Home, "workspaces", outgoing.Folder, "*")); err != nil || len(left) > 0 {
				t.Errorf("kept: %v, %v", left, err)
			}
			if kept, err := filepath.Glob(filepath.Join(w.Home, "workspaces", "main", "telegram:2", ".agent", "canvas", "*")); err != nil || len(kept) != 1 {
				t.Errorf("the workspace has %q, %v", kept, err)
			}
			w.Run("forget", "--session", "main:telegram:2", "--yes")
			if found := parleytest.FilesWith(t, w.Home, "Load of the week"); len(found) > 0 {
				t.Errorf("after it was forgotten, it is in %q", found)
			}
		})
	}
}

// A canvas that the answer also shows, by another form of its path, is sent once.
func TestACanvasThatIsShownGoesOnce(t *testing.T) {
	t.Parallel()
	w := parleytest.New(t, func(r agenttest.Request) agenttest.Response {
		if r.Rounds() == 0 {
			return draws(r)
		}
		var told struct{ Path string }
		parleytest.Must(t, json.Unmarshal([]byte(r.Results()[0]), &told))
		return agenttest.Reply("![the load](./" + told.Path + ") and ![again](.agent/../" + told.Path + ")")
	}, "")
	p := w.Serve()
	w.Telegram.Say(2, 2, "draw it")
	w.WaitSaid(2, 2)
	p.Stop()
	files := 0
	for _, m := range w.Telegram.Sent(2) {
		if m.File != nil {
			files++
		}
	}
	if files != 1 {
		t.Errorf("%d files arrived", files)
	}
}

// With a browser, Telegram and Slack get a picture of the canvas.
func TestACanvasGoesAsAPicture(t *testing.T) {
	t.Parallel()
	check := func(t *testing.T, name string, data []byte) {
		t.Helper()
		if shot, err := png.Decode(bytes.NewReader(data)); err != nil || shot.Bounds().Dx() < 600 || name != "load_of_the_week.png" {
			t.Errorf("%s arrived: %v", name, err)
		}
	}
	t.Run("Telegram", func(t *testing.T) {
		t.Parallel()
		w := parleytest.New(t, draws, "")
		withBrowser(t, w)
		p := w.Serve()
		w.Telegram.Say(2, 2, "draw it")
		w.WaitSaid(2, 2)
		p.Stop()
		sent := w.Telegram.Sent(2)
		last := sent[len(sent)-1].File
		if last == nil || !last.Photo {
			t.Fatalf("there is no picture: %q", parleytest.Texts(sent))
		}
		check(t, last.Name, last.Data)
	})
	t.Run("Slack", func(t *testing.T) {
		t.Parallel()
		w, sl := parleytest.NewSlack(t, draws)
		withBrowser(t, w)
		sl.AddUser(slacktest.User{ID: "U1", Name: "Member"})
		p := w.Serve("SLACK_BOT_TOKEN="+parleytest.SlackBot, "SLACK_APP_TOKEN="+parleytest.SlackApp)
		sl.Say("C1", "U1", "<@"+slacktest.Bot+"> draw it")
		sent := parleytest.SlackSaid(t, sl, "C1", 2)
		p.Stop()
		last := sent[len(sent)-1]
		check(t, last.File, last.Data)
	})
}
