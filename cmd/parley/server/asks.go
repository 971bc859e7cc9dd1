package server

import (
	"parley/agent"
	"parley/channels/asks"
	"parley/channels/console"
	"parley/channels/web"
)

// newAsks returns the service that asks people for approvals and answers, and records what they
// decide.
func newAsks(on foundation) *asks.Service {
	return &asks.Service{Bus: on.home.Bus, Book: on.home.Book, Sends: on.home.Book, ShowsAll: showsAll, MayPark: on.home.MayPark, OnEnded: on.metrics.AskEnded, Log: on.log}
}

// showsAll reports whether a text of any length is shown completely on a channel: in a terminal,
// and by programs.
func showsAll(channel string) bool { return channel == console.Name || channel == web.Name }

// approvals returns where people are asked for approvals and for how long, according to the current
// settings.
func (s *settings) approvals() agent.Approvals {
	c := s.Load().Approvals
	return agent.Approvals{Expires: c.Expires, To: s.places(c.To)}
}
