package mcp

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/tools"
	"parley/tools/mcp/pins"
	"parley/tools/plainjson"
)

// Limits of what a server lists.
const (
	maxPages       = 50
	maxTools       = 500
	maxDescription = 8 << 10 // bytes
	maxToolName    = 200
)

// A Listing is a server's answer to the request for its tools.
type Listing struct {
	Tools    []pins.Tool              // the tools that can be used
	Unusable map[string]UnusableTools // the other tools, by the reason why they can't be used
	Took     time.Duration            // the time it took to connect and to list the tools
}

// UnusableTools are the tools of a server that cannot be used for a particular reason.
type UnusableTools struct {
	Tools int      // how many there are
	Names []string // the first maxUnusableNames names
}

// maxUnusableNames limits how many names are kept of the tools that cannot be used for one reason.
const maxUnusableNames = 20

// unusableByReason are all tools of a server that cannot be used, by reason.
type unusableByReason map[string]UnusableTools

// add adds a tool. Its name is "" if it has none.
func (l unusableByReason) add(why, name string) {
	one := l[why]
	if one.Tools++; name != "" && len(one.Names) < maxUnusableNames {
		one.Names = append(one.Names, oneLine(tools.Clip(name, maxName)))
	}
	l[why] = one
}

// listTools asks a server for its tools: all pages, within limits. It leaves out tools that cannot
// be used, and logs them.
func (s *Servers) listTools(ctx context.Context, one *server, session *mcp.ClientSession) (all []pins.Tool, left unusableByReason, err error) {
	known, cursors := map[string]bool{}, map[string]bool{}
	left = unusableByReason{}
	params := &mcp.ListToolsParams{}
	for page := 1; ; page++ {
		got, err := session.ListTools(ctx, params)
		if err != nil {
			return nil, nil, fmt.Errorf("list its tools: %w", err)
		}
		for _, t := range got.Tools {
			tool, why := toPin(t)
			switch {
			case why != "":
			case known[tool.Name]:
				why = "another tool has the same name"
			case len(all) == maxTools:
				why = "there are too many"
			default:
				known[tool.Name] = true
				all = append(all, tool)
			}
			if why != "" && t != nil {
				left.add(why, t.Name)
			} else if why != "" {
				left.add(why, "")
			}
		}
		if got.NextCursor == "" {
			break
		}
		if page == maxPages || cursors[got.NextCursor] || len(all) == maxTools {
			left.add("there are too many pages", "")
			break
		}
		cursors[got.NextCursor] = true
		params = &mcp.ListToolsParams{Cursor: got.NextCursor}
	}
	for why, l := range left {
		s.cfg.Log.Warn("tools of an MCP server are left out", slog.String("server", one.Name), slog.Int("tools", l.Tools), slog.Any("names", l.Names), slog.String("why", why))
	}
	slices.SortFunc(all, func(a, b pins.Tool) int { return strings.Compare(a.Name, b.Name) })
	return all, left, nil
}

// toPin returns a tool in the form in which models are shown it. If the tool cannot be used, the
// text says why.
func toPin(t *mcp.Tool) (pins.Tool, string) {
	if t == nil || t.Name == "" {
		return pins.Tool{}, "it has no name"
	}
	if len(t.Name) > maxToolName {
		return pins.Tool{}, "its name is too long"
	}
	schema := map[string]any{}
	if given, ok := t.InputSchema.(map[string]any); ok {
		schema = given
	} else if t.InputSchema != nil {
		return pins.Tool{}, "its schema is not an object"
	}
	schema["type"] = "object"
	if _, ok := schema["properties"]; !ok {
		schema["properties"] = map[string]any{} // some providers refuse an object schema without
	}
	delete(schema, "$schema")
	raw, err := plainjson.Marshal(schema)
	if err != nil {
		return pins.Tool{}, "its schema cannot be written down"
	}
	if err := tools.CheckSchema(raw); err != nil {
		return pins.Tool{}, "its schema cannot be used"
	}
	description := t.Description
	if description == "" {
		description = t.Title
	}
	return pins.Tool{Name: t.Name, Description: tools.Clip(strings.ToValidUTF8(description, "\uFFFD"), maxDescription), Schema: raw}, ""
}
