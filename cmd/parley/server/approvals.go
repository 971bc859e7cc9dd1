package server

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
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
	texts := textsIn(args, nil)
	paths := slices.Clone(texts)
	for _, text := range texts {
		paths = append(paths, strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n'\"`;|&<>()=:,", r) })...)
	}
	slices.Sort(paths)
	if paths = slices.Compact(paths); len(paths) > mostPaths {
		return "", fmt.Errorf("they have %d different words, and more than %d are not looked up as names of files", len(paths), mostPaths)
	}
	return dir.Fingerprint(paths)
}

// mostPaths bounds how many different texts are looked up as the name of a file. What
// has more is not approved: a file that is not looked at might change unseen.
const mostPaths = 20_000

// textsIn adds all texts of a JSON value.
func textsIn(value any, texts []string) []string {
	switch v := value.(type) {
	case string:
		texts = append(texts, v)
	case []any:
		for _, one := range v {
			texts = textsIn(one, texts)
		}
	case map[string]any:
		for _, one := range v {
			texts = textsIn(one, texts)
		}
	}
	return texts
}

// waits tells whether a turn of a session waits for people.
func (s *Server) waits(ctx context.Context, session string) (bool, error) {
	return s.home.Book.Waits(ctx, session)
}
