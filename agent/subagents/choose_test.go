package subagents_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"parley/agent/subagents"
	"parley/tools"
)

// A task goes to an agent with the needed abilities: one whose nodes are here, then the least busy one, then not the
// caller.
func TestATaskGoesToACapableAgent(t *testing.T) {
	can := map[string][]subagents.Ability{
		"main":   {{Name: "shell"}, {Name: "camera"}},
		"garage": {{Name: "camera", Away: true}, {Name: "ocr"}},
		"hall":   {{Name: "camera"}},
		"porch":  {{Name: "camera"}},
		"secret": {{Name: "vault"}},
	}
	d := subagents.New(subagents.Config{
		Table: newStore(t).SubAgents(), Bus: newBus(t), Log: slog.New(slog.DiscardHandler),
		Ready:     func(context.Context) (string, error) { return "", nil },
		MaySpawn:  func(string) []string { return []string{"garage", "hall", "main", "porch"} },
		Abilities: func(_ tools.Call, agent string) []subagents.Ability { return can[agent] },
	})
	gets := func(key string, needs ...string) (string, error) {
		t.Helper()
		call := tools.Call{Session: parent, Agent: "main", Key: key, Person: "telegram:2", Address: "telegram:2"}
		got, err := d.Prepare(t.Context(), call, tools.Task{Prompt: "look", Needs: needs})
		return got.Agent, err
	}
	for n, c := range []struct{ needs, agent string }{
		{"camera", "hall"}, {"camera", "porch"}, {"ocr camera", "garage"}, {"shell", "main"},
	} {
		key := fmt.Sprint("t#", n)
		got, err := gets(key, strings.Fields(c.needs)...)
		if err != nil || got != c.agent {
			t.Errorf("%s: %q, %v; want %s", c.needs, got, err, c.agent)
		}
		if again, err := gets(key, strings.Fields(c.needs)...); err != nil || again != got {
			t.Errorf("%s: the repeated call gives it to %q, %v; want %s", c.needs, again, err, got)
		}
	}
	clear(can) // the agent that has the task keeps it
	if got, err := gets("t#0", "camera"); err != nil || got != "hall" {
		t.Errorf("the repeated call gives it to %q, %v", got, err)
	}
	can["garage"], can["secret"] = []subagents.Ability{{Name: "ocr"}, {Name: "camera"}}, []subagents.Ability{{Name: "vault"}}
	for _, needs := range []string{"vault", "ocr camera wings"} {
		_, err := gets("t#9", strings.Fields(needs)...)
		refused, ok := errors.AsType[*tools.Error](err)
		if !ok || refused.Code != tools.NotFound || !strings.Contains(refused.Message, "They can do: camera, ocr.") {
			t.Errorf("%s: %v", needs, err)
		}
	}
}
