package operation

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"parley/agent/agenttest"
	"parley/bus"
	"parley/cmd/parley/parleytest"
)

// A client that watches a conversation, over HTTP or at a terminal, is told when a model fails and another one is
// asked, what each call has used, and when the past was summarized.
func TestWatchersAreToldOfTheModelsCalls(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	long := strings.Repeat("a long answer about nothing at all. ", 400)
	w := priced(t, func(r agenttest.Request) agenttest.Response {
		var asked struct{ Model string }
		if err := r.Decode(&asked); err != nil {
			t.Error(err)
		}
		switch {
		case asked.Model != "spare":
			return agenttest.Fail(http.StatusForbidden, `{"error":{"message":"not for you"}}`)
		case len(r.Tools()) == 0: // the request to summarize the past
			return agenttest.Reply("a short summary")
		case r.Rounds() == 0 && strings.Contains(r.Said(), "look"):
			return agenttest.Calls(agenttest.ToolCall{Name: "list_directory", Args: `{"path":"."}`})
		case r.Rounds() > 0:
			return agenttest.Reply("done").WaitFor(release)
		}
		return agenttest.Reply(long)
	}, "")
	text, err := os.ReadFile(w.File)
	parleytest.Must(t, err)
	_, base, _ := strings.Cut(string(text), "base_url = ")
	base, _, _ = strings.Cut(base, "\n")
	configured := strings.Replace(string(text), "[model]\n", "[model]\nfallback = [\"spare\"]\n", 1) +
		fmt.Sprintf("\n[models.spare]\nname = \"spare\"\nbase_url = %s\napi_key = \"none\"\nprice_input = 1.0\nprice_output = 2\n", base)
	parleytest.Must(t, os.WriteFile(w.File, []byte(configured), 0o600))
	o := parleytest.ListenHTTP(w)
	o.Up()
	var told atomic.Pointer[map[string][]map[string]any]
	told.Store(&map[string][]map[string]any{})
	follow(o, "main:console:default", func(kind string, data []byte) {
		var d map[string]any
		if err := json.Unmarshal(data, &d); err != nil {
			t.Error(err)
		}
		all := maps.Clone(*told.Load())
		all[kind] = append(slices.Clone(all[kind]), d)
		told.Store(&all)
	})
	of := func(kind string, n int) map[string]any {
		t.Helper()
		parleytest.WaitFor(t, kind, func() bool { return len((*told.Load())[kind]) >= n })
		return (*told.Load())[kind][n-1]
	}

	one := parleytest.Sit(w)
	one.Types("look")
	one.Sees("isn't answering: asking spare right away")
	if r := of(bus.Retried, 1); r["from"] != "scripted" || r["to"] != "spare" || r["attempt"].(float64) < 2 || r["turn"] == "" {
		t.Errorf("over HTTP the retry is %v", r)
	}
	one.Sees("100 tokens read, 10 written, $0.00012")
	u := of(bus.Used, 1)
	delete(u, "turn")
	if got := fmt.Sprint(u); got != "map[cached:0 estimated:false input:100 microdollars:120 model:spare output:10 reasoning:0]" {
		t.Errorf("over HTTP the call has used %s", got)
	}
	close(release)
	one.Sees("done")
	of(bus.Used, 2)
	for n := range 2 {
		one.Types("tell me")
		of(bus.TurnComplete, n+2)
	}
	one.Types("/compact")
	one.Sees("the model now sees less history")
	if c := of(bus.Compacted, 1); c["before"].(float64) <= c["after"].(float64) || c["after"].(float64) <= 0 {
		t.Errorf("over HTTP the past was summed up from %v to %v", c["before"], c["after"])
	}
	one.Leaves()
}

// follow watches a session over HTTP until the test ends. It calls each for every event, from one goroutine.
func follow(o *parleytest.HTTPWorld, session string, each func(kind string, data []byte)) {
	o.T.Helper()
	req, err := http.NewRequestWithContext(o.T.Context(), http.MethodGet, o.URL+"/v1/sessions/"+session+"/events", nil)
	parleytest.Must(o.T, err)
	req.Header.Set(o.OwnerHeader()[0], o.OwnerHeader()[1])
	res, err := (&http.Client{Transport: o.Client.Transport}).Do(req)
	parleytest.Must(o.T, err)
	if res.StatusCode != http.StatusOK {
		o.T.Fatalf("the events of %s: %s", session, res.Status)
	}
	ended := make(chan struct{})
	o.T.Cleanup(func() { _ = res.Body.Close(); <-ended })
	go func() {
		defer close(ended)
		lines := bufio.NewScanner(res.Body)
		lines.Buffer(nil, 1<<20)
		for kind := ""; lines.Scan(); {
			if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				kind = name
			} else if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				each(kind, []byte(data))
			}
		}
	}()
}
