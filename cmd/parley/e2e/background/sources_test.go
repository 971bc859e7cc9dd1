//go:build linux

package background

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/agent/agenttest"
	"parley/cmd/parley/parleytest"
)

// A prying is a model that tries, in each turn that no person began, to read the memory of the turn's person. It
// records what it is shown, by the source of the turn. In a turn that a person began, it makes the one call that the
// person names.
type prying struct {
	mu    sync.Mutex
	shown map[string][]string
}

// sourceOf returns what began a turn: beat, schedule, job or event. It returns "" if a person did.
func sourceOf(r agenttest.Request) string {
	all := r.Messages()
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Role != "user" {
			continue
		}
		switch said := all[i].Content; {
		case strings.Contains(said, "This is a look at a checklist"):
			return "beat"
		case strings.Contains(said, `" schedule="`):
			return "schedule"
		case strings.Contains(said, "<notice>The job "):
			return "job"
		case strings.Contains(said, "was posted to the webhook alerts"):
			return "event"
		}
		return ""
	}
	return ""
}

func (p *prying) model(r agenttest.Request) agenttest.Response {
	source := sourceOf(r)
	p.mu.Lock()
	p.shown[source] = append(p.shown[source], string(r.Body))
	p.mu.Unlock()
	switch tool, args, _ := strings.Cut(strings.TrimPrefix(r.Said(), "@parleybot "), " "); {
	case source != "" && r.Rounds() == 0:
		return agenttest.Calls(
			agenttest.ToolCall{Name: "memory_read", Args: `{"scope":"person"}`},
			agenttest.ToolCall{Name: "memory_read", Args: `{"scope":"session"}`},
			agenttest.ToolCall{Name: "grep", Args: `{"pattern":"xyzz[y]","path":"."}`},
		)
	case source == "" && r.Rounds() == 0 && json.Valid([]byte(args)):
		return agenttest.Calls(agenttest.ToolCall{Name: tool, Args: args})
	}
	return agenttest.Reply("done by " + source)
}

// took waits until a turn of this source has the results of its calls, and reports whether the model was ever shown a
// text. It then clears what the model was shown.
func (p *prying) took(t *testing.T, source, text string) bool {
	t.Helper()
	var all string
	parleytest.WaitFor(t, "a turn of "+source, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		all = strings.Join(p.shown[source], "\n")
		return len(p.shown[source]) >= 2
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shown[source] = nil
	return strings.Contains(all, text)
}

// A turn sees the memory of a person only if it was begun in that person's private chat. Turns of all other chats,
// events and heartbeats see none of it.
func TestNoSourceOfTurnsSeesWhatItMustNot(t *testing.T) {
	t.Parallel()
	const secret, group = "xyzzy-plugh", -10099
	list := filepath.Join(t.TempDir(), "list.md")
	parleytest.Must(t, os.WriteFile(list, []byte("- Is all well?\n"), 0o600))
	p := &prying{shown: map[string][]string{}}
	o := newEventWorld(t, p.model, parleytest.WithShell+fmt.Sprintf("[heartbeat]\nevery = \"1s\"\nfile = %q\nto = \"telegram:1\"\n", list))
	o.NeedsSandbox()
	o.Up()
	o.Telegram.Say(2, 2, `memory_write {"scope":"person","content":"my secret is `+secret+`"}`)
	o.WaitSaid(2, 1)
	job, later := `exec_shell {"command":"true","background":true}`, `schedule {"action":"add","when":"in 1s","text":"look"}`

	o.event("g", "DiskFull", time.Now(), nil)
	for _, source := range []string{"event", "beat"} {
		if p.took(t, source, secret) {
			t.Errorf("%s was shown it", source)
		}
	}
	for _, c := range []struct {
		source, says string
		chat         int64
		sees         bool
	}{{"schedule", later, group, false}, {"job", job, group, false}, {"schedule", later, 2, true}, {"job", job, 2, true}, {"job", job, 3, false}, {"schedule", later, 3, false}} {
		who := int64(2)
		if c.chat > 0 {
			who = c.chat
		}
		o.Telegram.Say(c.chat, who, "@parleybot "+c.says)
		if p.took(t, c.source, secret) != c.sees {
			t.Errorf("what a %s begins for %d in %d was shown it, or not: want %t", c.source, who, c.chat, c.sees)
		}
		parleytest.WaitFor(t, "the answer", func() bool {
			n := strings.Count(strings.Join(parleytest.Texts(o.Telegram.Sent(c.chat)), "\n"), "done by "+c.source)
			return n > 0
		})
	}
}
