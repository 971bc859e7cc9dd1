package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/tools"
	"parley/tools/mcp/pins"
	"parley/tools/sandbox"
)

// Bounds of what a server lists.
const (
	maxPages       = 50
	maxTools       = 500
	maxDescription = 8 << 10 // bytes
	maxToolName    = 200
	// longestRetry is how long it is waited at most until a server is looked at again that
	// could not be.
	longestRetry = 5 * time.Minute
)

// attend looks at the tools of one server until ctx is done: at the start, until that has
// worked, and after it has said that they changed. A server that says so all the time is
// looked at now and then.
func (s *Servers) attend(ctx context.Context, one *server) {
	wait := s.cfg.Limits.Backoff
	told := ""
	for ctx.Err() == nil {
		_, err := s.look(ctx, one)
		if ctx.Err() != nil {
			return
		}
		s.stand(ctx, one, err)
		one.once.Do(func() { close(one.looked) })
		if err != nil {
			if told != err.Error() {
				told = err.Error()
				s.cfg.Log.Warn("the tools of an MCP server cannot be listed", slog.String("server", one.Name), slog.Any("error", err))
			}
			if !one.pause(ctx, wait) {
				return
			}
			wait = min(2*wait, longestRetry)
			continue
		}
		wait, told = s.cfg.Limits.Backoff, ""
		select {
		case <-ctx.Done():
			return
		case <-one.changed:
		case <-one.signed:
			continue
		}
		if !one.pause(ctx, s.cfg.Limits.Settle) {
			return
		}
		select { // what it has said meanwhile is looked at now
		case <-one.changed:
		default:
		}
	}
}

// stand keeps what came of the last time that a server was connected to.
func (s *Servers) stand(ctx context.Context, one *server, err error) {
	one.mu.Lock()
	_, wanted := errors.AsType[*LoginError](one.err)
	one.tried, one.err = true, err
	one.mu.Unlock()
	if _, wants := errors.AsType[*LoginError](err); wants && !wanted && s.cfg.Login != nil {
		s.cfg.Login(ctx, one.Name)
	}
}

// lookAgain has attend look at the tools of a server, if it is not about to.
func (s *server) lookAgain() {
	select {
	case s.changed <- struct{}{}:
	default: // it is known already
	}
}

// pause waits, but no longer than until somebody has signed in to the server.
func (s *server) pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-s.signed:
	case <-timer.C:
	}
	return true
}

// A Listing is what a server says when it is asked for its tools.
type Listing struct {
	Tools []pins.Tool    // as it lists them, sorted by name
	Left  map[string]int // why others of them cannot be used, and how many
	Took  time.Duration  // until it was connected to and had listed them
}

// Look asks a server for its tools now, whatever is known of it, and compares them with
// those that are accepted. ErrNoServer says that none has this name.
func (s *Servers) Look(ctx context.Context, name string) (Listing, error) {
	i := slices.IndexFunc(s.servers, func(one *server) bool { return one.Name == name })
	if i < 0 {
		return Listing{}, ErrNoServer
	}
	listing, err := s.look(ctx, s.servers[i])
	if ctx.Err() == nil {
		s.stand(ctx, s.servers[i], err)
	}
	return listing, err
}

// ErrNoServer says that no server has a name.
var ErrNoServer = errors.New("no such server is configured")

// look lists the tools of a server, and compares them with those that are accepted. The
// program that it runs for that sees an empty folder in place of a workspace.
func (s *Servers) look(ctx context.Context, one *server) (l Listing, err error) {
	var place sandbox.Place
	if !one.Web() && !one.Shared {
		dir, err := os.MkdirTemp("", "parley-mcp-")
		if err != nil {
			return Listing{}, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
		place.Workspace = dir
	}
	began := time.Now()
	c, err := s.connect(ctx, one, place, time.Time{})
	if err != nil {
		return Listing{}, err
	}
	defer c.close()
	l = Listing{Tools: c.tools, Left: c.left, Took: time.Since(began)}
	return l, s.observe(ctx, one, c.tools)
}

// observe compares what a server lists with what is accepted, and tells of what was set
// aside.
func (s *Servers) observe(ctx context.Context, one *server, listed []pins.Tool) error {
	aside, err := s.cfg.Pins.Observe(ctx, one.Name, listed)
	if len(aside) > 0 {
		s.cfg.Log.Warn("tools of an MCP server are new or have changed, and wait until an owner accepts them",
			slog.String("server", one.Name), slog.Int("tools", len(aside)))
		if s.cfg.Aside != nil {
			s.cfg.Aside(ctx, one.Name, aside)
		}
	}
	return err
}

// list asks a server for its tools: all pages, within bounds. What cannot be used is left
// out, and logged.
func (s *Servers) list(ctx context.Context, one *server, session *mcp.ClientSession) (all []pins.Tool, left map[string]int, err error) {
	known, cursors := map[string]bool{}, map[string]bool{}
	left = map[string]int{}
	params := &mcp.ListToolsParams{}
	for page := 1; ; page++ {
		got, err := session.ListTools(ctx, params)
		if err != nil {
			return nil, nil, fmt.Errorf("list its tools: %w", err)
		}
		for _, t := range got.Tools {
			tool, why := usable(t)
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
			if why != "" {
				left[why]++
			}
		}
		if got.NextCursor == "" {
			break
		}
		if page == maxPages || cursors[got.NextCursor] || len(all) == maxTools {
			left["there are too many pages"]++
			break
		}
		cursors[got.NextCursor] = true
		params = &mcp.ListToolsParams{Cursor: got.NextCursor}
	}
	for why, n := range left {
		s.cfg.Log.Warn("tools of an MCP server are left out", slog.String("server", one.Name), slog.Int("tools", n), slog.String("why", why))
	}
	slices.SortFunc(all, func(a, b pins.Tool) int { return strings.Compare(a.Name, b.Name) })
	return all, left, nil
}

// usable is a tool as models are shown it, or why it cannot be used.
func usable(t *mcp.Tool) (pins.Tool, string) {
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
	var raw bytes.Buffer
	enc := json.NewEncoder(&raw)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(schema); err != nil {
		return pins.Tool{}, "its schema cannot be written down"
	}
	compact := json.RawMessage(bytes.TrimSpace(raw.Bytes()))
	if err := tools.CheckSchema(compact); err != nil {
		return pins.Tool{}, "its schema cannot be used"
	}
	description := t.Description
	if description == "" {
		description = t.Title
	}
	return pins.Tool{Name: t.Name, Description: tools.Clip(strings.ToValidUTF8(description, "\uFFFD"), maxDescription), Schema: compact}, ""
}
