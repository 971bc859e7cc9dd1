package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"parley/cmd/parley/api"
	"parley/cmd/parley/config"
	"parley/cmd/parley/server/mcpservers"
	"parley/cmd/parley/terminal/client"
)

// checkServers tells the server of this home to ask each MCP server for its tools, and returns the results. If no
// server is running, the findings say that nobody was asked.
func checkServers(ctx context.Context, cfg *config.Config) []Finding {
	names := slices.Sorted(maps.Keys(cfg.MCP))
	return sideBySide(len(names), func(i int) Finding { return checkServer(ctx, cfg, names[i]) })
}

func checkServer(ctx context.Context, cfg *config.Config, name string) Finding {
	f := Finding{Part: "mcp " + name, State: fine}
	ctx, cancel := context.WithTimeout(ctx, 3*checkTimeout) // the server may connect twice
	defer cancel()
	var got mcpservers.Trial
	err := client.Dial(cfg.Home).Do(ctx, http.MethodPost, "/v1/mcp/"+url.PathEscape(name)+"/test", "", nil, &got)
	refused, answered := errors.AsType[*client.Error](err)
	switch {
	case answered && refused.Status == http.StatusNotFound:
		f.State, f.Detail, f.Remedy = note, "this home's server doesn't know about it yet", "it takes effect at the next start"
	case answered:
		f.State, f.Detail = note, refused.Message
	case err != nil:
		f.State, f.Detail, f.Remedy = note, "not asked, because this home's server isn't running", "test it with parley mcp test "+name
	case !got.Up:
		f.State, f.Detail, f.Remedy = wrong, got.Error, "agents can't use it: check "+settingOf(cfg, "mcp."+name+"."+reachSetting(cfg.MCP[name]))
	case len(got.Aside) > 0 || len(got.Unusable) > 0:
		f.State = note
		f.Detail = fmt.Sprintf("answers in %d ms; tools: %d; not accepted yet: %d, and some can't be used", got.Milliseconds, got.Listed, len(got.Aside))
		if len(got.Unusable) == 0 {
			f.Detail = fmt.Sprintf("answers in %d ms; tools: %d; not accepted yet: %d", got.Milliseconds, got.Listed, len(got.Aside))
		}
		f.Remedy = "look at them with parley mcp list and parley mcp test " + name
	default:
		f.Detail = fmt.Sprintf("answers in %d ms; tools: %d", got.Milliseconds, got.Listed)
	}
	return f
}

// reachSetting returns the setting that says how to reach an MCP server: its command or its URL.
func reachSetting(m config.MCPServer) string {
	if m.URL != "" {
		return "url"
	}
	return "command"
}

// checkLeftTools asks the server of this home which tools its models are not shown, and returns a
// finding for each model that lacks some. If no server is running, there are no findings.
func checkLeftTools(ctx context.Context, cfg *config.Config) (found []Finding) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	var got struct {
		Left []api.LeftTool `json:"left_tools"`
	}
	if client.Dial(cfg.Home).Do(ctx, http.MethodGet, "/v1/status?brief=true", "", nil, &got) != nil {
		return nil
	}
	tools := map[[2]string][]string{} // by the model and the reason
	for _, one := range got.Left {
		key := [2]string{one.Model, one.Why}
		tools[key] = append(tools[key], one.Tool)
	}
	for _, key := range slices.SortedFunc(maps.Keys(tools), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		found = append(found, Finding{
			Part: "tools of " + key[0], State: note, Detail: key[1] + ": agents don't have " + strings.Join(tools[key], ", "),
			Remedy: "list the tools that you need as tools = [...] in their server's section, [mcp.NAME], or choose another model",
		})
	}
	return found
}
