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
	// longestRetry bounds the wait until a server that could not be reached is asked again.
	longestRetry = 5 * time.Minute
)

// watchTools lists the tools of one server until ctx is done: at the start, repeatedly until that
// has worked, and whenever the server has said that they changed. A server that says so all the
// time is asked only now and then.
func (s *Servers) watchTools(ctx context.Context, one *server) {
	wait := s.cfg.Limits.Backoff
	told := ""
	for ctx.Err() == nil {
		_, err := s.check(ctx, one)
		if ctx.Err() != nil {
			return
		}
		s.recordOutcome(ctx, one, err)
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
		select { // changes announced meanwhile are part of the next look
		case <-one.changed:
		default:
		}
	}
}

// recordOutcome stores how the latest attempt to connect to a server has ended. If the server
// wants somebody to sign in, and did not before, it reports that.
func (s *Servers) recordOutcome(ctx context.Context, one *server, err error) {
	one.mu.Lock()
	_, wanted := errors.AsType[*LoginError](one.err)
	one.tried, one.err = true, err
	one.mu.Unlock()
	if _, wants := errors.AsType[*LoginError](err); wants && !wanted && s.cfg.Login != nil {
		s.cfg.Login(ctx, one.Name)
	}
}

// requestLook asks watchTools to list the server's tools again.
func (s *server) requestLook() {
	select {
	case s.changed <- struct{}{}:
	default: // a signal is waiting already
	}
}

// pause waits for d, or until somebody has signed in to the server. It returns false if ctx has
// ended.
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

// A Listing is the answer of a server that was asked for its tools.
type Listing struct {
	Tools []pins.Tool    // sorted by name
	Left  map[string]int // how many other tools cannot be used, by reason
	Took  time.Duration  // to connect and to list the tools
}

// Check asks a server for its tools now, whatever is known of it, and compares them with the
// accepted ones. ErrNoServer says that no server has this name.
func (s *Servers) Check(ctx context.Context, name string) (Listing, error) {
	i := slices.IndexFunc(s.servers, func(one *server) bool { return one.Name == name })
	if i < 0 {
		return Listing{}, ErrNoServer
	}
	listing, err := s.check(ctx, s.servers[i])
	if ctx.Err() == nil {
		s.recordOutcome(ctx, s.servers[i], err)
	}
	return listing, err
}

// ErrNoServer says that no server has the name.
var ErrNoServer = errors.New("no such server is configured")

// check lists the tools of a server, and compares them with the accepted ones. A program that is
// run for this sees an empty folder instead of a workspace.
func (s *Servers) check(ctx context.Context, one *server) (l Listing, err error) {
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
	l = Listing{Tools: c.tools, Left: c.unusable, Took: time.Since(began)}
	return l, s.observe(ctx, one, c.tools)
}

// observe compares the tools that a server lists with the accepted ones, and reports those that
// agents do not get until an owner accepts them.
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

// listTools asks a server for its tools: all pages, within bounds. Tools that cannot be used are
// left out, and logged.
func (s *Servers) listTools(ctx context.Context, one *server, session *mcp.ClientSession) (all []pins.Tool, left map[string]int, err error) {
	known, cursors := map[string]bool{}, map[string]bool{}
	left = map[string]int{}
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

// toPin returns a tool in the form in which models are shown it; if it cannot be used, the text
// says why.
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
