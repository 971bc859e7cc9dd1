package mcpservers

import (
	"encoding/json"
	"errors"
	"net/http"

	"parley/tools/mcp/pins"
)

// A Server is one as it is told over HTTP.
type Server struct {
	Name   string   `json:"name"`
	Tools  []Tool   `json:"tools"`  // that agents have
	Aside  []Tool   `json:"aside"`  // that wait for an owner
	Agents []string `json:"agents"` // that have them
	Error  string   `json:"error,omitempty"`
}

// A Tool is one of a server's.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
}

// List tells how all servers stand.
func (s *Servers) List() []Server {
	all := []Server{}
	for _, state := range s.States() {
		one := Server{Name: state.Name, Tools: told(state.Tools), Aside: told(state.Aside), Agents: s.settings[state.Name].Agents}
		if state.Err != nil {
			one.Error = state.Err.Error()
		}
		all = append(all, one)
	}
	return all
}

func told(all []pins.Tool) []Tool {
	list := []Tool{}
	for _, t := range all {
		list = append(list, Tool(t))
	}
	return list
}

// ServeHTTP lists the servers, or accepts tools of one: POST …/{name}/accept, with
// {"tool"} or without for all.
func (s *Servers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		answer(w, http.StatusOK, map[string]any{"servers": s.List()})
		return
	}
	var asked struct{ Tool string }
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4<<10)).Decode(&asked); err != nil {
		refuse(w, http.StatusBadRequest, "bad_request", `the body is to be {} or {"tool": "NAME"}`)
		return
	}
	names, err := s.Pins.Accept(r.Context(), r.PathValue("name"), asked.Tool)
	switch {
	case errors.Is(err, pins.ErrNoServer):
		refuse(w, http.StatusNotFound, "not_found", "nothing is known of the tools of that server: GET /v1/mcp lists those that are configured")
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
