package server

import (
	"context"
	"fmt"

	"parley/agent"
	"parley/bus"
	"parley/channels/asks"
	"parley/tools"
	"parley/tools/guard"
)

// newDesk makes the place where asks are opened and decided.
func (s *Server) newDesk() *asks.Desk {
	return &asks.Desk{Bus: s.home.Bus, Book: s.home.Book, MayPark: s.home.MayPark, Ended: s.metrics.AskEnded, Log: s.log}
}

// approvals is how approvals are asked for, as it is configured now.
func (s *Server) approvals() agent.Approvals {
	c := s.settings.Load()
	a := agent.Approvals{Expires: c.Approvals.Expires}
	a.To = s.places(c.Approvals.To)
	return a
}

// places are the addresses of targets and addresses as they are written.
func (s *Server) places(written []string) (all []bus.Address) {
	targets := s.settings.Load().Targets
	for _, place := range written {
		if to, ok := targets[place]; ok {
			all = append(all, to...)
			continue
		}
		if at, err := bus.ParseAddress(place); err == nil { // the configuration was checked
			all = append(all, at)
		}
	}
	return all
}

// named is a sum of what a call works on beside its arguments: the session's directory,
// and the files in it that the arguments name, whole or within a command line.
func (s *Server) named(ctx context.Context, call tools.Call) (string, error) {
	dir, err := s.home.Workspace(call.Session)
	if err != nil {
		return "", fmt.Errorf("open the workspace: %w", err)
	}
	words, folders, err := guard.Words(call)
	if err != nil {
		return "", err
	}
	return dir.Fingerprint(ctx, words, folders)
}

// waits tells whether a turn of a session waits for people.
func (s *Server) waits(ctx context.Context, session string) (bool, error) {
	return s.home.Book.Waits(ctx, session)
}
