package server

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"parley/agent"
	"parley/bus"
	"parley/channels/asks"
	"parley/tools"
)

// newDesk makes the place where asks are opened and decided.
func (s *Server) newDesk() *asks.Desk {
	return &asks.Desk{Bus: s.home.Bus, Book: s.home.Book, MayPark: s.home.MayPark, Ended: s.metrics.AskEnded, Log: s.log}
}

// approvals is how approvals are asked for, as it is configured now.
func (s *Server) approvals() agent.Approvals {
	c := s.settings.Load()
	a := agent.Approvals{Expires: c.Approvals.Expires}
	for _, place := range c.Approvals.To {
		if to, ok := c.Targets[place]; ok {
			a.To = append(a.To, to...)
			continue
		}
		if at, err := bus.ParseAddress(place); err == nil { // the configuration was checked
			a.To = append(a.To, at)
		}
	}
	return a
}

// named is a sum of what a call works on beside its arguments: the session's directory,
// and the files in it that the arguments name, whole or within a command line.
func (s *Server) named(_ context.Context, call tools.Call) (string, error) {
	dir, err := s.home.Workspace(call.Session)
	if err != nil {
		return "", fmt.Errorf("open the workspace: %w", err)
	}
	var args any
	if err := json.Unmarshal(call.Args, &args); err != nil {
		return "", fmt.Errorf("read the arguments: %w", err)
	}
	return dir.Fingerprint(pathsIn(args, nil))
}

// mostPaths bounds how much of the arguments is taken for the name of a file.
const mostPaths = 2000

// pathsIn adds all texts of a JSON value that may name a file, and the words of those
// that may be a command line.
func pathsIn(value any, paths []string) []string {
	switch v := value.(type) {
	case string:
		paths = append(paths, v)
		paths = append(paths, strings.FieldsFunc(v, func(r rune) bool { return strings.ContainsRune(" \t\r\n'\"`;|&<>()=:,", r) })...)
	case []any:
		for _, one := range v {
			paths = pathsIn(one, paths)
		}
	case map[string]any:
		for _, one := range v {
			paths = pathsIn(one, paths)
		}
	}
	return paths[:min(len(paths), mostPaths)]
}

// waits tells whether a turn of a session waits for people.
func (s *Server) waits(ctx context.Context, session string) (bool, error) {
	return s.home.Book.Waits(ctx, session)
}
