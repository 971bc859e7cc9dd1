package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/bus"
	"parley/cmd/parley/api/exchange"
	"parley/cmd/parley/server/inventory"
)

// askInventory sends a request to the inventory, decodes the answer, and returns the status.
func askInventory(t *testing.T, v *inventory.Inventory, pattern, target, id string, into any) int {
	t.Helper()
	i := slices.IndexFunc(v.Routes(), func(r exchange.Route) bool { return r.Pattern == pattern })
	if i < 0 {
		t.Fatalf("there is no %s", pattern)
	}
	told, asked := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, target, nil)
	asked.SetPathValue("id", id)
	answer := exchange.New(told, asked, exchange.NewBodyReader(time.Minute, time.Minute), time.Minute)
	if err := v.Routes()[i].Serve(answer, asked); err != nil {
		refused, ok := errors.AsType[*exchange.Refusal](err)
		if !ok {
			t.Fatal(err)
		}
		return refused.Status
	}
	if into != nil {
		if err := json.Unmarshal(told.Body.Bytes(), into); err != nil {
			t.Fatalf("%s: %v", told.Body, err)
		}
	}
	return told.Code
}

func inventoryOf(s *Server) *inventory.Inventory {
	return newInventory(s.foundation, s.agents.answerer.agents)
}

// Each agent is listed with its models and the tools that its capabilities allow, and each tool with the agents that
// have it.
func TestAgentsAndToolsAreListed(t *testing.T) {
	s := newTestServer(t, "[model]\nname = \"demo\"\n[agents.main]\ncapabilities = [\"file_read\"]\n[agents.ops]\ncapabilities = [\"network\"]\nday = 2\n[agents.mute]\ncapabilities = []\n")
	s.settings.Load().Targets = map[string][]bus.Address{"ci": {{Channel: "telegram", Chat: "42"}}}
	v := inventoryOf(s)
	var agents struct{ Agents []inventory.Agent }
	askInventory(t, v, "GET /v1/agents", "/v1/agents", "", &agents)
	var names []string
	for _, a := range agents.Agents {
		names = append(names, a.Name)
		if reads, fetches := slices.Contains(a.Tools, "read_file"), slices.Contains(a.Tools, "web_fetch"); reads != (a.Name == "main") || fetches != (a.Name == "ops") {
			t.Errorf("%s has the tools %q", a.Name, a.Tools)
		}
		if a.Answers == (a.Name == "mute") || len(a.Models) != 1 || a.Day != map[string]int64{"ops": 2_000_000}[a.Name] {
			t.Errorf("listed is %+v", a)
		}
	}
	if !slices.Equal(names, []string{"main", "mute", "ops"}) {
		t.Errorf("listed are %q", names)
	}
	s.metrics.Tool("web_fetch", "timeout", time.Second)
	var all struct{ Tools []inventory.Tool }
	askInventory(t, v, "GET /v1/tools", "/v1/tools", "", &all)
	i := slices.IndexFunc(all.Tools, func(t inventory.Tool) bool { return t.Name == "web_fetch" })
	if i < 0 {
		t.Fatalf("listed are %+v", all.Tools)
	}
	if one := all.Tools[i]; one.Origin != "builtin" || one.Permission != "network" || one.Effect == "" || !slices.Equal(one.Agents, []string{"ops"}) || one.Calls != 1 || one.Failed != 1 {
		t.Errorf("listed is %+v", one)
	}
	var targets struct{ Targets []inventory.Target }
	askInventory(t, v, "GET /v1/targets", "/v1/targets", "", &targets)
	if len(targets.Targets) != 1 || targets.Targets[0].Name != "ci" || !slices.Equal(targets.Targets[0].To, []string{"telegram:42"}) {
		t.Errorf("listed are %+v", targets)
	}
	var skills struct{ Skills []any }
	if askInventory(t, v, "GET /v1/skills", "/v1/skills", "", &skills); skills.Skills == nil {
		t.Error("no list of skills is answered")
	}
}

// Each setting in force is shown with its origin, and without secrets.
func TestSettingsAreShownWithoutSecrets(t *testing.T) {
	v := inventoryOf(newTestServer(t, "[model]\nname = \"demo\"\n[tokens.ci]\ntoken = \"xyzzy-plugh-xyzzy\"\nmay = [\"read\"]\n"))
	var shown struct {
		File     string
		Settings []struct {
			Key, From string
			Value     any
		}
	}
	if askInventory(t, v, "GET /v1/config", "/v1/config", "", &shown); !strings.HasSuffix(shown.File, "parley.toml") {
		t.Errorf("the file is %q", shown.File)
	}
	from := map[string]string{}
	for _, one := range shown.Settings {
		from[one.Key] = one.From
		if one.Key == "tokens.ci.token" && one.Value != "***" {
			t.Errorf("a secret is shown: %v", one.Value)
		}
	}
	if !strings.Contains(from["model.name"], "parley.toml:2") || from["http.listen"] != "default" || from["tokens.ci.token"] == "" {
		t.Errorf("they come from %v", from)
	}
}
