package mcpservers

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"parley/cmd/parley/api/exchange"
	"parley/sessions"
	"parley/tools/mcp"
	"parley/tools/mcp/pins"
)

// A Server describes an MCP server in the API.
type Server struct {
	Name   string      `json:"name"`
	State  State       `json:"state"`
	SignIn bool        `json:"sign_in"` // whether somebody can sign in to it
	Tools  []Tool      `json:"tools"`   // tools that agents get
	Aside  []AsideTool `json:"aside"`   // tools that agents don't get because no owner has accepted them yet
	Agents []string    `json:"agents"`  // agents that get the tools
	Error  string      `json:"error,omitempty"`
}

// A State says how this process's last attempt to reach a server ended.
type State string

// These are the states.
const (
	up           State = "up"
	down         State = "down"
	signInNeeded State = "sign_in" // somebody has to sign in first
	untried      State = "untried" // this process has not tried yet
)

// stateOf returns the state of a server.
func stateOf(s mcp.State) State {
	_, wants := errors.AsType[*mcp.SignInNeededError](s.Err)
	switch {
	case wants:
		return signInNeeded
	case s.Err != nil:
		return down
	case s.Reachable:
		return up
	}
	return untried
}

// A Tool is a tool of an MCP server, in the API's JSON.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
}

// An AsideTool is a tool that no owner has accepted yet, as it describes itself now.
type AsideTool struct {
	Tool
	Digest string `json:"digest"`        // the digest of this description
	Was    *Tool  `json:"was,omitempty"` // as an owner accepted it before; nil if it is new
}

// List returns the state of all configured MCP servers, as the API shows it.
func (s *Servers) List() []Server {
	all := []Server{}
	for _, state := range s.States() {
		_, err := s.SignInServer(state.Name)
		one := Server{
			Name: state.Name, State: stateOf(state), SignIn: err == nil, Tools: toolsOf(state.Tools), Aside: []AsideTool{},
			Agents: append([]string{}, s.settings[state.Name].Agents...),
		}
		for _, t := range state.Unaccepted {
			beside := AsideTool{Tool: Tool(t), Digest: t.Digest()}
			if was, known := s.Pins.Before(state.Name, t.Name); known {
				beside.Was = new(Tool(was))
			}
			one.Aside = append(one.Aside, beside)
		}
		if state.Err != nil {
			one.Error = state.Err.Error()
		}
		all = append(all, one)
	}
	return all
}

// toolsOf converts tools to the form in which the API lists them.
func toolsOf(all []pins.Tool) []Tool {
	list := []Tool{}
	for _, t := range all {
		list = append(list, Tool(t))
	}
	return list
}

// Routes returns the routes for the servers that the API serves.
func (s *Servers) Routes() []exchange.Route {
	return []exchange.Route{
		{Pattern: "GET /v1/mcp", May: exchange.Caller.IsAdmin, Serve: s.list},
		{Pattern: "GET /v1/mcp/{name}/login", May: exchange.Caller.IsAdmin, Serve: s.isSignedIn},
		{Pattern: "POST /v1/mcp/{name}/login", May: exchange.Caller.IsAdmin, Serve: s.login, Audit: sessions.AuditApproval, Result: "login"},
		{Pattern: "POST /v1/mcp/{name}/test", May: exchange.Caller.IsAdmin, Serve: s.test},
		{Pattern: "POST /v1/mcp/{name}/accept", May: exchange.Caller.IsAdmin, Serve: s.accept, Audit: sessions.AuditApproval, Result: "accepted"},
		{Pattern: "GET " + callbackPath + "{name}/callback", Open: true, Public: true, Serve: s.callback},
		{Pattern: "GET " + pagePath, Open: true, Public: true, Serve: s.clientPage},
	}
}

// list answers with the configured servers.
func (s *Servers) list(w *exchange.Answer, r *http.Request) error {
	if err := s.Refresh(r.Context()); err != nil {
		return err
	}
	return w.JSON(http.StatusOK, map[string]any{"servers": s.List()})
}

// requestedName returns the name in the request's path, and records it in the answer as the request's subject.
func requestedName(w *exchange.Answer, r *http.Request) string {
	w.ID = r.PathValue("name")
	w.Subject = w.ID
	return w.ID
}

// noServer refuses a request about a server that is not configured.
func noServer() *exchange.Refusal {
	return exchange.NotFound("no server by that name is configured: parley mcp list, or GET /v1/mcp, lists those that are")
}

// A Trial is the result of asking a server for its tools.
type Trial struct {
	Server                     // its state now
	Up           bool          `json:"up"`
	Listed       int           `json:"listed"` // number of tools that can be used
	Unusable     []ReasonCount `json:"unusable"`
	Milliseconds int64         `json:"ms"` // time until it was connected and had listed its tools
}

// A ReasonCount says how many tools cannot be used for a particular reason, and names the first of them.
type ReasonCount struct {
	Reason string   `json:"reason"`
	Tools  int      `json:"tools"`
	Names  []string `json:"names,omitempty"`
}

// test serves a request to connect to an MCP server now and ask it for its tools.
func (s *Servers) test(w *exchange.Answer, r *http.Request) error {
	name := requestedName(w, r)
	if s.elsewhere && s.settings[name].Command != "" {
		return exchange.Conflict("elsewhere", "this process doesn't run programs, because it's a gateway: run parley mcp test where a worker runs")
	}
	listing, err := s.Check(r.Context(), name)
	if errors.Is(err, mcp.ErrNoServer) {
		return noServer()
	}
	trial := Trial{Up: err == nil, Listed: len(listing.Tools), Unusable: []ReasonCount{}, Milliseconds: listing.Took.Milliseconds()}
	for _, why := range slices.Sorted(maps.Keys(listing.Unusable)) {
		trial.Unusable = append(trial.Unusable, ReasonCount{why, listing.Unusable[why].Tools, listing.Unusable[why].Names})
	}
	for _, one := range s.List() {
		if one.Name == name {
			trial.Server = one
		}
	}
	if err != nil {
		trial.Error = err.Error() // even if no worker has recorded it
	}
	return w.JSON(http.StatusOK, trial)
}

// accept serves an owner's request to accept tools of an MCP server, so that agents get them: the named tool, or all
// that wait.
func (s *Servers) accept(w *exchange.Answer, r *http.Request) error {
	name := requestedName(w, r)
	var asked struct{ Tool, Digest string }
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4<<10)).Decode(&asked); err != nil {
		return exchange.BadRequest("bad_request", `the body must be {}, {"tool": "NAME"} or {"tool": "NAME", "digest": "the one that it was listed with"}`)
	}
	if asked.Digest != "" && asked.Tool == "" {
		return exchange.Unprocessable("no_tool", `a digest belongs to one tool: give "tool" as well`)
	}
	names, err := s.Pins.Accept(r.Context(), name, asked.Tool, asked.Digest)
	switch {
	case errors.Is(err, pins.ErrNoServer):
		return exchange.NotFound(textUnknownTools)
	case errors.Is(err, pins.ErrNothing):
		return exchange.Unprocessable("nothing_aside", "that server has nothing waiting to be accepted, or no tool by that name")
	case errors.Is(err, pins.ErrChanged):
		return exchange.Conflict("changed", "the tool's description has changed: look at it again")
	case err != nil:
		w.Refuse(&exchange.Refusal{Status: http.StatusServiceUnavailable, Code: "unavailable", Message: "it can't be stored right now: try again"})
		return nil
	}
	w.Noted.Tool = exchange.Shorten(strings.Join(names, ", "))
	return w.JSON(http.StatusOK, map[string]any{"accepted": names})
}
