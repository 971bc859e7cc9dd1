package mcpservers

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"path"
	"slices"

	"parley/tools/mcp"
	"parley/tools/mcp/pins"
)

// A Server describes an MCP server in the API.
type Server struct {
	Name   string   `json:"name"`
	Tools  []Tool   `json:"tools"`  // tools that agents have
	Aside  []Tool   `json:"aside"`  // tools that agents do not have because no owner has accepted them yet
	Agents []string `json:"agents"` // agents that have the tools
	Error  string   `json:"error,omitempty"`
}

// A Tool is a tool of an MCP server, in the API's JSON.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
}

// List returns the state of all configured MCP servers, as the API shows it.
func (s *Servers) List() []Server {
	all := []Server{}
	for _, state := range s.States() {
		one := Server{Name: state.Name, Tools: toolsOf(state.Tools), Aside: toolsOf(state.Aside), Agents: s.settings[state.Name].Agents}
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

// ServeHTTP serves GET /v1/mcp, which lists the servers; GET and POST
// /v1/mcp/{name}/login, with which somebody signs in to one; POST /v1/mcp/{name}/test,
// which asks one for its tools now; and POST /v1/mcp/{name}/accept, which accepts one
// tool for {"tool": "NAME"}, or all for {}.
func (s *Servers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case path.Base(r.URL.Path) == "login":
		s.login(w, r)
	case r.Method == http.MethodGet:
		answer(w, http.StatusOK, map[string]any{"servers": s.List()})
	case path.Base(r.URL.Path) == "test":
		s.test(w, r)
	default:
		s.accept(w, r)
	}
}

// A Trial is the result of asking a server for its tools.
type Trial struct {
	Server                     // its state now
	Up           bool          `json:"up"`
	Listed       int           `json:"listed"` // tools that can be used
	Unusable     []ReasonCount `json:"unusable"`
	Milliseconds int64         `json:"ms"` // until it was connected and had listed its tools
}

// A ReasonCount says how many tools cannot be used for one reason.
type ReasonCount struct {
	Reason string `json:"reason"`
	Tools  int    `json:"tools"`
}

// test serves a request to connect to an MCP server now and ask it for its tools.
func (s *Servers) test(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if s.elsewhere && s.settings[name].Command != "" {
		refuse(w, http.StatusConflict, "elsewhere", "this process runs no programs, because it is a gateway: run parley mcp test where a worker is")
		return
	}
	listing, err := s.Check(r.Context(), name)
	if errors.Is(err, mcp.ErrNoServer) {
		refuse(w, http.StatusNotFound, "not_found", "no server of that name is configured: parley mcp list, or GET /v1/mcp, lists those that are")
		return
	}
	trial := Trial{Up: err == nil, Listed: len(listing.Tools), Unusable: []ReasonCount{}, Milliseconds: listing.Took.Milliseconds()}
	for _, why := range slices.Sorted(maps.Keys(listing.Left)) {
		trial.Unusable = append(trial.Unusable, ReasonCount{why, listing.Left[why]})
	}
	for _, one := range s.List() {
		if one.Name == name {
			trial.Server = one
		}
	}
	if err != nil {
		trial.Error = err.Error() // also where no worker has noted it
	}
	answer(w, http.StatusOK, trial)
}

// accept serves an owner's request to accept tools of an MCP server, so that agents have them.
func (s *Servers) accept(w http.ResponseWriter, r *http.Request) {
	var asked struct{ Tool string }
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4<<10)).Decode(&asked); err != nil {
		refuse(w, http.StatusBadRequest, "bad_request", `the body is to be {} or {"tool": "NAME"}`)
		return
	}
	names, err := s.Pins.Accept(r.Context(), r.PathValue("name"), asked.Tool)
	switch {
	case errors.Is(err, pins.ErrNoServer):
		refuse(w, http.StatusNotFound, "not_found", "nothing is known of the tools of that server: parley mcp list, or GET /v1/mcp, lists those that are configured")
	case errors.Is(err, pins.ErrNothing):
		refuse(w, http.StatusUnprocessableEntity, "nothing_aside", "nothing of that server, or no tool of that name, waits to be accepted")
	case err != nil:
		refuse(w, http.StatusServiceUnavailable, "unavailable", "it cannot be kept now: try again")
	default:
		answer(w, http.StatusOK, map[string]any{"accepted": names})
	}
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	answer(w, status, map[string]any{"error": map[string]string{"code": code, "message": message}})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // who asked may be gone
}
